"""Why a subscription matches a publication, or what failed first and what came closest."""
