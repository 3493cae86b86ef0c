"""Files and folders of files."""
