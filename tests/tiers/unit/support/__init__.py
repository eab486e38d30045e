"""What tests and campaigns share, where it judges."""
