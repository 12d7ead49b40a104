"""One function per verb; nothing here prints."""
