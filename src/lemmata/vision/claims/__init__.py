"""What is true of images, filters and restoration: each file checks the statements on one subject."""
