"""The `rappor` command: one module for each verb."""
