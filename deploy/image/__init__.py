"""The container image: `make image`.

`root.py` runs inside a Debian base and lays out three layers; `Dockerfile` has docker do that, `build.py` a chroot
where no docker daemon runs, with `base.py` to make the base and `archive.py` to write the image file.
"""
