"""The broker's web page: server-rendered, usable without JavaScript, nothing from elsewhere."""
