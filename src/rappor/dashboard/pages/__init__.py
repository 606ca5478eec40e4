"""The pages, one module each; every module lists its routes in PAGES."""
