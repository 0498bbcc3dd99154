/* A LeaseConsumer. After a lost reply, it repeats the step. A claim begins again from its first step. */

/* Two workers can have a delivery of the message at the same time. */
proctype Worker(byte w) {
  byte seen_token, seen_fence;
#ifdef CLOCK_READ_EARLY
  byte early_clock;
#endif
  bool called, duplicate;
  mtype step = idle;

  do
  :: atomic {
      step == idle ->
      if
      :: !acknowledged -> skip
      :: acknowledged && redeliveries > 0 -> redeliveries--
      :: acknowledged && redeliveries == 0 -> break
      fi;
      may_acknowledge[w] = (row.state == consumed || row.state == parked);
#ifdef TOKEN_PER_WORKER
      draw_token();
#endif
      printf("worker %d gets a delivery\n", w);
      step = reading
    }

  :: atomic {
      step == reading ->
      printf("worker %d reads: %e, fence %d, %d ticks left\n", w, row.state, row.fence, row.left);
      seen_token = 0; seen_fence = 0;
      if
#ifdef VANISHED_IS_CONSUMED
      :: row.state == absent && duplicate -> step = acknowledging
      :: row.state == absent && !duplicate -> left[w] = LEASE; step = inserting
#else
      :: row.state == absent -> left[w] = LEASE; step = inserting
#endif
      :: row.state == consumed || row.state == parked -> step = acknowledging
      :: row.state == consuming && row.left > 0 && row.token == token[w] ->
        /* The worker's own claim, whose reply was lost. The deadline is the rest of that lease, not a new lease. */
#ifdef DEADLINE_FROM_REPEATED_CLAIM
        left[w] = LEASE;
#else
        left[w] = row.left;
#endif
        start_handler()
      :: row.state == consuming && row.left > 0 && row.token != token[w] -> stop() /* in_progress */
#ifdef NO_TAKEOVER
      :: row.state == consuming && row.left == 0 -> stop()
#else
      :: row.state == consuming && row.left == 0 ->
        seen_token = row.token; seen_fence = row.fence;
        left[w] = LEASE;
        step = taking_over
#endif
      fi
    }

#ifdef CLOCK_READ_EARLY
  :: atomic { step == inserting -> read_clock(); early_clock = clock; step = inserting_late }
#endif
  :: atomic {
#ifdef CLOCK_READ_EARLY
      step == inserting_late ->
#else
      step == inserting ->
#endif
      if
      :: crash()
      :: lose(); step = reading
#ifdef LATE
      :: MAY_BE_LATE -> losses--; draw_token(); send_late(late_insert, token[w], 0, 0, 0); step = reading
#endif
      :: !locked && row.state == absent ->
        printf("worker %d inserts\n", w);
        draw_token();
#ifdef CLOCK_READ_EARLY
        grant_lease(token[w], 1, early_clock);
#else
        read_clock();
        grant_lease(token[w], 1, clock);
#endif
        receive_grant()
      :: !locked && row.state != absent ->
        printf("worker %d inserts: a duplicate\n", w);
        duplicate = true;
        step = reading
      fi
    }

  :: atomic {
      step == taking_over ->
      if
      :: crash()
      :: lose(); step = reading
#ifdef LATE
      :: MAY_BE_LATE ->
        losses--; draw_token(); send_late(late_takeover, token[w], seen_fence, seen_token, 0); step = reading
#endif
      :: !locked && TAKES_OVER(seen_token, seen_fence) ->
        printf("worker %d takes over from fence %d\n", w, seen_fence);
        check_deadline();
        draw_token();
        read_clock();
        grant_lease(token[w], seen_fence + 1, clock);
        receive_grant()
      :: !locked && !TAKES_OVER(seen_token, seen_fence) -> step = reading
      fi
    }

#ifdef DEADLINE_FROM_REPLY
  :: atomic { step == granted -> left[w] = LEASE; running[w] = true; step = handling }
#endif

  :: atomic {
      step == handling ->
      if
      :: crash()
#ifdef LATE
      :: crashes > 0 && !called && late == nothing -> send_late(late_call, 0, fence[w], 0, grant[w]); crash()
#endif
      :: !called && !IS_REFUSED(fence[w]) ->
        printf("worker %d calls the service with fence %d\n", w, fence[w]);
        call_service(fence[w], grant[w]);
        called = true
      :: !called && IS_REFUSED(fence[w]) ->
        printf("worker %d is refused by the service\n", w);
#if !defined(FENCES_UNCHECKED) && !defined(REFUSALS_UNCHECKED)
        CHECK(!IS_HOLDER(w), holder_not_refused);
#endif
        step = releasing /* the handler throws */
      :: called -> step = completing
      :: throws > 0 -> throws--; printf("worker %d: the handler throws\n", w); step = releasing
#ifdef PARKS
      :: throws > 0 -> throws--; printf("worker %d: the message is to be parked\n", w); step = parking
#endif
      :: renews > 0 -> renews--; sent[w] = LEASE; step = renewing
      fi
    }

  :: atomic {
      step == renewing ->
      if
      :: crash()
      :: lose(); sent[w] = LEASE
#ifdef LATE
      :: MAY_BE_LATE -> losses--; send_late(late_renewal, token[w], fence[w], 0, grant[w]); sent[w] = LEASE
#endif
      :: !locked && RENEWS_LEASE(token[w], fence[w]) ->
        printf("worker %d renews\n", w);
        CHECK(row.grant == grant[w], own_lease_only);
        row.left = LEASE;
        if
        :: left[w] = sent[w]; sent[w] = 0; step = handling
        :: lose(); sent[w] = LEASE
        fi
      :: !locked && !RENEWS_LEASE(token[w], fence[w]) -> stop() /* lease_lost, and the handler stops */
      :: !locked && !RENEWS_LEASE(token[w], fence[w]) -> sent[w] = 0; step = handling /* or it goes on */
      fi
    }

  :: atomic {
      step == completing ->
      if
      :: crash()
      :: lose()
#ifdef LATE
      :: MAY_BE_LATE -> losses--; send_late(late_completion, token[w], fence[w], 0, grant[w])
#endif
      :: !locked && COMPLETES(token[w], fence[w]) ->
        printf("worker %d completes\n", w);
        complete_row(grant[w]);
        running[w] = false;
        if
        :: step = acknowledging
        :: lose()
        fi
      :: !locked && !COMPLETES(token[w], fence[w]) ->
        printf("worker %d completes no row\n", w);
        running[w] = false;
#ifdef COMPLETE_IGNORES_ROW_COUNT
        CHECK(row.state == consumed && row.grant == grant[w], own_completion);
        step = acknowledging
#else
        step = checking
#endif
      fi
    }

  :: atomic { /* No row was completed. Either our completion's reply was lost, or another worker has the lease. */
      step == checking ->
      if
      :: crash()
#ifdef ANY_COMPLETION_IS_OWN
      :: row.state == consumed -> CHECK(row.grant == grant[w], own_completion); step = acknowledging
      :: row.state != consumed -> stop()
#elif defined(VANISHED_IS_COMPLETED)
      :: row.state == absent || (row.state == consumed && row.token == token[w]) -> step = acknowledging
      :: row.state != absent && !(row.state == consumed && row.token == token[w]) -> stop()
#else
      :: row.state == consumed && row.token == token[w] ->
        CHECK(row.grant == grant[w], own_completion);
        step = acknowledging
      :: !(row.state == consumed && row.token == token[w]) -> stop() /* lease_lost */
#endif
      fi
    }

  :: atomic {
      step == releasing ->
      running[w] = false;
      if
      :: crash()
      :: lose()
#ifdef LATE
      :: MAY_BE_LATE -> losses--; send_late(late_release, token[w], fence[w], 0, grant[w])
#endif
      :: !locked && RELEASES(token[w], fence[w]) ->
        printf("worker %d releases\n", w);
        CHECK(row.grant == grant[w], own_lease_only);
        row.left = 0;
        if
        :: stop()
        :: lose()
        fi
      :: !locked && !RELEASES(token[w], fence[w]) -> stop()
      fi
    }

#ifdef PARKS
  :: atomic {
      step == parking ->
      running[w] = false;
      if
      :: crash()
      :: lose()
      :: !locked && PARKS_MESSAGE(token[w], fence[w]) ->
        printf("worker %d parks the message\n", w);
        CHECK(row.grant == grant[w], own_lease_only);
        settle(parked);
        if
        :: stop() /* the redelivery finds it parked */
        :: lose()
        fi
      :: !locked && !PARKS_MESSAGE(token[w], fence[w]) -> stop()
      fi
    }
#endif

  :: atomic {
      step == acknowledging ->
      if
      :: crash()
      :: printf("worker %d acknowledges\n", w); CHECK(may_acknowledge[w], justified); acknowledged = true; stop()
      fi
    }
  od
}
