"""The template that `rappor reproduce --new` copies."""
