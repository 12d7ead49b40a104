"""Files on local disks and mounts."""
