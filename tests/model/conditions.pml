/* The WHERE clause of each statement, and its mutations. t: a token. f: a fence. */

#ifdef OWNER_BY_FENCE
#define MINE(t, f) (row.state == consuming && row.fence == (f))
#elif defined(OWNER_BY_TOKEN)
#define MINE(t, f) (row.state == consuming && row.token == (t))
#else
#define MINE(t, f) (row.state == consuming && row.token == (t) && row.fence == (f))
#endif

#ifdef COMPLETE_UNCHECKED
#define COMPLETES(t, f) (row.state == consuming)
#else
#define COMPLETES(t, f) MINE(t, f)
#endif
#ifdef RENEW_UNCHECKED
#define RENEWS_LEASE(t, f) (row.state == consuming)
#else
#define RENEWS_LEASE(t, f) MINE(t, f)
#endif
#ifdef RELEASE_UNCHECKED
#define RELEASES(t, f) (row.state == consuming)
#else
#define RELEASES(t, f) MINE(t, f)
#endif
#ifdef PARK_UNCHECKED
#define PARKS_MESSAGE(t, f) (row.state == consuming)
#else
#define PARKS_MESSAGE(t, f) MINE(t, f)
#endif

#ifdef TAKEOVER_WITHOUT_STATE
#define IN_STATE (row.state != absent)
#else
#define IN_STATE (row.state == consuming)
#endif
#ifdef TAKEOVER_WITHOUT_EXPIRY
#define IS_EXPIRED true
#else
#define IS_EXPIRED (row.left == 0)
#endif
#ifdef TAKEOVER_WITHOUT_COMPARE
#define AS_SEEN(t, f) true
#else
#define AS_SEEN(t, f) (row.token == (t) && row.fence == (f))
#endif
#define TAKES_OVER(t, f) (IN_STATE && IS_EXPIRED && AS_SEEN(t, f))
