"""What a plug-in and an engine must be, and how they are found."""
