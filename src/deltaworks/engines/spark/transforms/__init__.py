"""One module per transform plug-in, under the same name."""
