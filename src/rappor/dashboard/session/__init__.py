"""The login page, and the choices that a cookie keeps."""
