"""Feeds to publications: RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, JSON Feed 1 and 1.1.

Whatever the format, an item comes out in one vocabulary (RSS 1.0's own, with Dublin Core and
mod_enclosure), so that one subscription serves all. `document` reads XML and `mend` mends it;
`rss`, `atom` and `json_feed` find the fields; `triples` writes them; `rss1` adds what RDF there is.
"""

from semantic.feeds.formats import FeedFormat, sniff_feed
from semantic.feeds.read import read_feed

__all__ = ["FeedFormat", "read_feed", "sniff_feed"]
