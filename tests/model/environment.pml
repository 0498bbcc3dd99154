/* The environment of the workers: time, an operator, a store that loses rows, a network that delays statements. */

/* Time passes. The lease of a holder who is alive expires only a limited number of times. */
proctype Time() {
  byte w;
end:
  do
  :: d_step {
      (row.left > 0 || left[0] > 0 || left[1] > 0 || sent[0] > 0 || sent[1] > 0) &&
        (row.left != 1 || !(IS_ALIVE(0) || IS_ALIVE(1)) || outlives > 0);
      printf("a tick\n");
      if
      :: row.left == 1 && (IS_ALIVE(0) || IS_ALIVE(1)) -> outlives--
      :: else -> skip
      fi;
      if :: row.left > 0 -> row.left-- :: else -> skip fi;
#if FAILOVERS > 0
      if :: replica.left > 0 -> replica.left-- :: else -> skip fi;
#endif
      for (w : 0 .. WORKERS - 1) {
        if :: left[w] > 0 -> left[w]-- :: else -> skip fi;
        if :: sent[w] > 0 -> sent[w]-- :: else -> skip fi
      };
      w = 0
    }
#if JUMPS > 0
  :: atomic { jumps > 0 && row.left > 0 -> jumps--; printf("the clock jumps forward\n"); row.left = 0 }
#endif
  od
}

#if FORGETS > 0
proctype Operator() {
end:
  do
  :: atomic {
      forgets > 0 && !locked && row.state != absent ->
      forgets--;
      printf("the operator forgets the row\n");
      row.state = absent; row.token = 0; row.fence = 0; row.left = 0; row.grant = 0;
      completions = 0
    }
  od
}
#endif

#if EVICTIONS + FAILOVERS > 0
/* A store that loses confirmed changes. */
proctype Store() {
end:
  do
#if EVICTIONS > 0
  :: atomic {
      evictions > 0 && row.state != absent ->
      evictions--;
      printf("the store evicts the row\n");
      row.state = absent; row.token = 0; row.fence = 0; row.left = 0; row.grant = 0;
      completions = 0
    }
#endif
#if FAILOVERS > 0
  :: atomic {
      failovers > 0 && !is_behind ->
      printf("the replica gets no more changes: %e, fence %d\n", row.state, row.fence);
      is_behind = true;
      replica.state = row.state; replica.token = row.token; replica.fence = row.fence;
      replica.left = row.left; replica.grant = row.grant
    }
  :: atomic {
      is_behind ->
      failovers--;
      printf("the replica takes over: %e, fence %d\n", replica.state, replica.fence);
      row.state = replica.state; row.token = replica.token; row.fence = replica.fence;
      row.left = replica.left; row.grant = replica.grant;
      completions = (row.state == consumed -> 1 : 0);
      is_behind = false;
      replica.state = absent; replica.token = 0; replica.fence = 0; replica.left = 0; replica.grant = 0
    }
#endif
  od
}
#endif

#ifdef LATE
proctype Network() {
end:
  do
  :: atomic {
      late == late_call || (late != nothing && !locked) ->
      printf("%e arrives\n", late);
      if
      :: late == late_insert && row.state == absent -> read_clock(); grant_lease(late_token, 1, clock)
      :: late == late_takeover && TAKES_OVER(late_seen_token, late_fence) ->
        check_deadline();
        read_clock();
        grant_lease(late_token, late_fence + 1, clock)
      :: late == late_renewal && RENEWS_LEASE(late_token, late_fence) ->
        CHECK(row.grant == late_grant, own_lease_only);
        row.left = LEASE
      :: late == late_completion && COMPLETES(late_token, late_fence) -> complete_row(late_grant)
      :: late == late_release && RELEASES(late_token, late_fence) ->
        CHECK(row.grant == late_grant, own_lease_only);
        row.left = 0
      :: late == late_call && !IS_REFUSED(late_fence) -> call_service(late_fence, late_grant)
      :: else -> skip
      fi;
      late = nothing; late_token = 0; late_fence = 0; late_seen_token = 0; late_grant = 0
    }
  od
}
#endif
