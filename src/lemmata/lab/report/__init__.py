"""The lab's pages as files: the same templates and the same knowledge, without a server."""
