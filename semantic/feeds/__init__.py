"""Convert feeds to publications: RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, JSON Feed 1 and 1.1, CDF.

Items of all formats use one vocabulary (RSS 1.0 with Dublin Core and mod_enclosure), so that one
subscription serves all. Module `read` detects the format, and `document` reads and repairs XML.
Modules `rss` and `atom` (both with `elements`) and `json_feed` fill the classes of `model`. Module
`triples` names the items and writes them.
"""

from semantic.feeds.read import FeedFormat, open_feed, read_feed, sniff_feed

__all__ = ["FeedFormat", "open_feed", "read_feed", "sniff_feed"]
