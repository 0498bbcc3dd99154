/* What the statements do, and the properties that must hold then. Code with `w` and `step` belongs to a worker. */

#define IS_HOLDER(w) (running[w] && row.state == consuming && row.token == token[w] && row.fence == fence[w])
/* It is also true before the worker gets the reply about its claim. */
#define IS_ALIVE(w) (row.state == consuming && token[w] != 0 && row.token == token[w])

/* The database's clock, read by a statement that grants a lease. */
inline read_clock() {
#ifdef CLOCK_COARSE
  if :: clock++ :: clock > 0 -> skip fi /* both within one unit of the clock */
#elif defined(CLOCK_BACKWARD)
  if :: clock++ :: clock > 0 -> skip :: clock > 1 -> clock-- fi
#else
  clock++
#endif
}

inline check_deadline() {
#ifndef DEADLINE_UNCHECKED
  byte each;
  d_step {
    for (each : 0 .. WORKERS - 1) { CHECK(!IS_HOLDER(each) || left[each] == 0, deadline_kept); }
    each = 0
  }
#else
  skip
#endif
}

/* The row is ours, with a fence of at least `least`. */
inline grant_lease(t, least, at) {
  d_step {
    grants++;
    row.state = consuming;
    row.token = t;
#ifdef FENCE_FROM_CLOCK_ALONE
    row.fence = at;
#else
    row.fence = (at > (least) -> at : (least));
#endif
#ifdef FENCE_FROM_ONE
    row.fence = (least);
#endif
    row.left = LEASE;
    row.grant = grants;
    printf("  lease granted to token %d: fence %d\n", t, row.fence);
#ifndef FENCES_UNCHECKED
    CHECK(row.fence > newest_fence, fences_grow);
#endif
    newest_fence = (row.fence > newest_fence -> row.fence : newest_fence)
  }
}

inline settle(new_state) {
  d_step {
    byte anyone;
    row.state = new_state;
    row.left = 0;
    for (anyone : 0 .. WORKERS) { may_acknowledge[anyone] = true; }
    anyone = 0
  }
}

inline complete_row(g) {
  CHECK(row.grant == g, own_lease_only);
  completions++;
  CHECK(completions == 1, one_completion);
  settle(consumed)
}

/* A fenced service. It refuses a fence that is smaller than the greatest fence that it has seen. */
#ifdef UNFENCED
#define IS_REFUSED(f) false
#else
#define IS_REFUSED(f) (service_fence > (f))
#endif
inline call_service(f, g) {
#ifndef FENCES_UNCHECKED
  CHECK(g >= service_grant, effects_in_order);
#endif
  service_fence = f;
  service_grant = g
}

/* A reply is lost. */
inline lose() { losses > 0 -> losses--; printf("  the reply is lost\n") }

#define MAY_BE_LATE (late == nothing && losses > 0)
inline send_late(what, t, f, seen_t, g) {
  d_step {
    printf("  %e is given up, but will arrive\n", what);
    late = what;
    late_token = t;
    late_fence = f;
    late_seen_token = seen_t;
    late_grant = g
  }
}

/* A new call of consume draws a new token. In the model, it does so when it first sends the token. */
inline draw_token() {
#ifdef TOKEN_PER_WORKER
  token[w] = w + 1
#else
  if
  :: token[w] == 0 -> tokens++; token[w] = tokens
  :: else -> skip
  fi
#endif
}

/* Ends the delivery. If it was not acknowledged, the broker delivers the message again. */
inline stop() {
  d_step {
    token[w] = 0; fence[w] = 0; left[w] = 0; sent[w] = 0; running[w] = false; grant[w] = 0;
    seen_token = 0; seen_fence = 0; called = false; duplicate = false;
    may_acknowledge[w] = false;
    step = idle
  }
}

inline crash() { crashes > 0 -> crashes--; printf("worker %d crashes, or gives up\n", w); stop() }

/* The reply about the granted lease arrives. If it is lost, the next read finds the lease. */
inline receive_grant() {
  if
  :: start_handler()
  :: lose(); step = reading
  fi
}

inline start_handler() {
#ifdef SECOND_RUNS_CHECKED
  CHECK(!acknowledged, no_second_run);
#endif
#ifdef OVERLAPS_CHECKED
  CHECK(!(running[1 - w] && left[1 - w] > 0), no_overlap);
#endif
  fence[w] = row.fence; grant[w] = row.grant;
  seen_token = 0; seen_fence = 0; duplicate = false;
#ifdef DEADLINE_FROM_REPLY
  step = granted
#else
  running[w] = true;
  step = handling
#endif
}
