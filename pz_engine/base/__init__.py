"""Small general modules that know no pz noun."""
