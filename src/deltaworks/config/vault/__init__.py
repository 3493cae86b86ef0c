"""Where credentials are kept, and how they are looked up by name."""
