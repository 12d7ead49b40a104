"""State in files below .pz."""
