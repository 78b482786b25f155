"""The broker's web page: rendered on the server, usable without JavaScript, without other sites."""
