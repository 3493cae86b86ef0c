"""The project file, its variables, and where things are kept."""
