"""What a real webserver and daemon do with pz projects; every case is a function that takes the scene."""
