"""Feeds to publications: RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, JSON Feed 1 and 1.1, CDF.

Whatever the format, an item comes out in one vocabulary (RSS 1.0's own, with Dublin Core and
mod_enclosure), so that one subscription serves all. `read` tells the format; `document` reads
XML, and mends it; `rss`, `atom` and `json_feed` find the fields of a `model`, the first two with
`elements`; `triples` names the items, and writes them.
"""

from semantic.feeds.read import FeedFormat, open_feed, read_feed, sniff_feed

__all__ = ["FeedFormat", "open_feed", "read_feed", "sniff_feed"]
