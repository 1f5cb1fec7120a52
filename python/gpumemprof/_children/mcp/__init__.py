"""Runs only in the child process of `mcp`: answers tools of the Model Context Protocol by the command's own outputs."""
