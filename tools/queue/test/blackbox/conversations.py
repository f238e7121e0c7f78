# SPDX-License-Identifier: GPL-2.0
"""The protocol of beanstalkd, as conversations, which talk.py explains.

Those of TIMED depend on the end of a TTR, which beanstalkd 1.12 does not always notice: there
its replies are only noted.
"""

SAME = {}
TIMED = {}

# --- put and use --------------------------------------------------------------------------

SAME["put_replies_with_an_id_and_reserve_with_the_body"] = """
a put 0 0 60 5 | hello
< INSERTED $j
a reserve
< RESERVED $j 5 | hello
a delete $j
< DELETED
"""

SAME["ids_grow"] = """
a put 0 0 60 1 | x
< INSERTED $j
a put 0 0 60 1 | y
< INSERTED $k
a peek $j
< FOUND $j 1 | x
a peek $k
< FOUND $k 1 | y
"""

SAME["an_empty_body_is_a_job"] = """
a put 0 0 60 0 |
< INSERTED $j
a reserve
< RESERVED $j 0 |
"""

SAME["a_put_goes_to_the_used_tube_and_not_to_a_watched_one"] = """
a use $u
< USING $u
a put 0 0 60 1 | x
< INSERTED $j
a reserve-with-timeout 0
< TIMED_OUT
a watch $u
< WATCHING 2
a reserve-with-timeout 0
< RESERVED $j 1 | x
"""

SAME["a_new_client_uses_and_watches_default"] = """
A list-tube-used
< USING default
A list-tubes-watched
< OK [default]
"""

SAME["list_tube_used_names_the_used_tube"] = """
a list-tube-used
< USING $t
a use $u
< USING $u
a list-tube-used
< USING $u
"""

SAME["ttr_0_is_1"] = """
a put 0 0 0 1 | x
< INSERTED $j
a stats-job $j
< OK ttr=1
"""

SAME["the_largest_numbers_are_accepted"] = """
a put 4294967295 4294967295 4294967295 1 | x
< INSERTED $j
a stats-job $j
< OK pri=4294967295 delay=4294967295 ttr=4294967295 state=delayed
"""

# --- order --------------------------------------------------------------------------------

SAME["smaller_priorities_come_first_and_equal_ones_in_the_order_of_put"] = """
a put 2 0 60 1 | c
< INSERTED $c
a put 1 0 60 1 | a
< INSERTED $a
a put 1 0 60 1 | b
< INSERTED $b
a put 0 0 60 1 | z
< INSERTED $z
a put 4294967295 0 60 1 | d
< INSERTED $d
a reserve
< RESERVED $z 1 | z
a reserve
< RESERVED $a 1 | a
a reserve
< RESERVED $b 1 | b
a reserve
< RESERVED $c 1 | c
a reserve
< RESERVED $d 1 | d
"""

SAME["priority_goes_before_the_order_of_watched_tubes"] = """
a watch $u
< WATCHING 2
a put 5 0 60 1 | a
< INSERTED $j
a use $u
< USING $u
a put 4 0 60 1 | b
< INSERTED $k
a put 6 0 60 1 | c
< INSERTED $l
a reserve
< RESERVED $k 1 | b
a reserve
< RESERVED $j 1 | a
a reserve
< RESERVED $l 1 | c
"""

SAME["a_released_job_has_its_new_priority_and_its_old_place"] = """
a put 5 0 60 1 | a
< INSERTED $j
a put 5 0 60 1 | b
< INSERTED $k
a reserve
< RESERVED $j 1 | a
a release $j 5 0
< RELEASED
a reserve
< RESERVED $j 1 | a
a release $j 6 0
< RELEASED
a reserve
< RESERVED $k 1 | b
"""

# --- reserve ------------------------------------------------------------------------------

SAME["reserve_waits_until_a_job_is_put"] = """
b reserve
< ...
a put 0 0 60 1 | x
< INSERTED $j
b< RESERVED $j 1 | x
"""

SAME["the_client_that_waits_longest_gets_the_job"] = """
b reserve
< ...
c reserve
< ...
a put 0 0 60 1 | x
< INSERTED $j
b< RESERVED $j 1 | x
c< ...
a put 0 0 60 1 | y
< INSERTED $k
c< RESERVED $k 1 | y
"""

SAME["a_client_that_waits_in_several_tubes_gets_from_each"] = """
b watch $u
< WATCHING 2
b reserve
< ...
a use $u
< USING $u
a put 0 0 60 1 | x
< INSERTED $j
b< RESERVED $j 1 | x
"""

SAME["reserve_with_timeout_0_replies_at_once"] = """
a reserve-with-timeout 0
< TIMED_OUT
"""

SAME["reserve_with_timeout_ends"] = """
mark
a reserve-with-timeout 1
< after 1 TIMED_OUT
"""

SAME["a_timeout_does_not_take_the_place_of_a_later_wait"] = """
a reserve-with-timeout 1
< TIMED_OUT
a reserve
< ...
b put 0 0 60 1 | x
< INSERTED $j
a< RESERVED $j 1 | x
"""

SAME["a_reserved_job_is_with_one_client"] = """
a put 0 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
b reserve-with-timeout 0
< TIMED_OUT
b reserve-job $j
< NOT_FOUND
a stats-job $j
< OK state=reserved
"""

SAME["a_reserved_job_is_ready_when_its_client_disconnects"] = """
a put 3 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
b reserve
< ...
a quit
b< RESERVED $j 1 | x
b stats-job $j
< OK pri=3 reserves=2 timeouts=0 releases=0
"""

SAME["reserve_job_takes_a_ready_a_delayed_and_a_buried_job"] = """
a put 9 0 60 1 | x
< INSERTED $j
a put 0 1000 60 1 | y
< INSERTED $k
b reserve-job $j
< RESERVED $j 1 | x
b reserve-job $k
< RESERVED $k 1 | y
b bury $j 0
< BURIED
b reserve-job $j
< RESERVED $j 1 | x
b stats-job $k
< OK state=reserved
b delete $k
< DELETED
b delete $j
< DELETED
"""

SAME["reserve_job_ignores_watched_tubes_and_pauses"] = """
a put 0 0 60 1 | x
< INSERTED $j
b watch $u
< WATCHING 2
b ignore $t
< WATCHING 1
a pause-tube $t 100
< PAUSED
b reserve-job $j
< RESERVED $j 1 | x
a pause-tube $t 0
< PAUSED
"""

SAME["reserve_job_does_not_find_a_job_of_the_same_client"] = """
a put 0 0 60 1 | x
< INSERTED $j
a reserve-job $j
< RESERVED $j 1 | x
a reserve-job $j
< NOT_FOUND
"""

# --- delete -------------------------------------------------------------------------------

SAME["delete_takes_ready_delayed_buried_and_own_jobs"] = """
a put 0 0 60 1 | a
< INSERTED $a
a put 0 1000 60 1 | b
< INSERTED $b
a put 0 0 60 1 | c
< INSERTED $c
a put 0 0 60 1 | d
< INSERTED $d
a reserve-job $c
< RESERVED $c 1 | c
a bury $c 0
< BURIED
a reserve-job $d
< RESERVED $d 1 | d
b delete $d
< NOT_FOUND
b delete $a
< DELETED
b delete $b
< DELETED
b delete $c
< DELETED
a delete $d
< DELETED
a delete $d
< NOT_FOUND
a peek $a
< NOT_FOUND
"""

# --- release ------------------------------------------------------------------------------

SAME["release_makes_ready_and_counts"] = """
a put 5 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
a release $j 7 0
< RELEASED
a stats-job $j
< OK state=ready pri=7 reserves=1 releases=1
b reserve-with-timeout 0
< RESERVED $j 1 | x
"""

SAME["release_with_a_delay_waits"] = """
a put 5 0 60 1 | x
< INSERTED $j
a put 5 0 60 1 | y
< INSERTED $k
a reserve
< RESERVED $j 1 | x
a reserve
< RESERVED $k 1 | y
a release $k 7 1000
< RELEASED
a stats-job $k
< OK state=delayed delay=1000
mark
a release $j 7 1
< RELEASED
b reserve
b< after 1 RESERVED $j 1 | x
"""

SAME["release_is_for_the_owner_only"] = """
a put 5 0 60 1 | x
< INSERTED $j
b release $j 0 0
< NOT_FOUND
a reserve
< RESERVED $j 1 | x
b release $j 0 0
< NOT_FOUND
a release $j 0 0
< RELEASED
a release $j 0 0
< NOT_FOUND
"""

SAME["a_release_wakes_a_client_that_waits"] = """
a put 5 0 60 1 | x
< INSERTED $j
a reserve
< RESERVED $j 1 | x
b reserve
< ...
a release $j 0 0
< RELEASED
b< RESERVED $j 1 | x
"""

# --- delays -------------------------------------------------------------------------------

SAME["a_delayed_job_is_ready_after_its_delay"] = """
a put 5 1000 60 1 | y
< INSERTED $k
a stats-job $k
< OK state=delayed delay=1000
a peek-ready
< NOT_FOUND
a reserve-with-timeout 0
< TIMED_OUT
mark
a put 5 1 60 1 | x
< INSERTED $j
b reserve
b< after 1 RESERVED $j 1 | x
"""

SAME["delayed_jobs_come_by_due_time"] = """
a put 0 2000 60 1 | x
< INSERTED $j
a put 5 1000 60 1 | y
< INSERTED $k
a put 9 1 60 1 | z
< INSERTED $l
b reserve
< RESERVED $l 1 | z
a peek-delayed
< FOUND $k 1 | y
a kick 1
< KICKED 1
b reserve
< RESERVED $k 1 | y
a peek-delayed
< FOUND $j 1 | x
"""

# --- bury and kick ------------------------------------------------------------------------

SAME["bury_puts_aside_and_kick_brings_back_in_order"] = """
a put 5 0 60 1 | a
< INSERTED $a
a put 5 0 60 1 | b
< INSERTED $b
a put 5 0 60 1 | c
< INSERTED $c
a reserve
< RESERVED $a 1 | a
a reserve
< RESERVED $b 1 | b
a reserve
< RESERVED $c 1 | c
a bury $b 9
< BURIED
a bury $a 3
< BURIED
a bury $c 9
< BURIED
a stats-job $a
< OK state=buried pri=3 buries=1
a peek-buried
< FOUND $b 1 | b
a reserve-with-timeout 0
< TIMED_OUT
a kick 2
< KICKED 2
a stats-job $a
< OK state=ready pri=3 kicks=1
a stats-job $b
< OK state=ready pri=9 kicks=1
a peek-buried
< FOUND $c 1 | c
a reserve
< RESERVED $a 1 | a
a reserve
< RESERVED $b 1 | b
"""

SAME["bury_is_for_the_owner_only"] = """
a put 5 0 60 1 | a
< INSERTED $a
b bury $a 0
< NOT_FOUND
a reserve
< RESERVED $a 1 | a
b bury $a 0
< NOT_FOUND
a bury $a 0
< BURIED
a bury $a 0
< NOT_FOUND
"""

SAME["kick_takes_delayed_jobs_only_if_none_is_buried"] = """
a put 5 0 60 1 | a
< INSERTED $a
a put 5 1000 60 1 | b
< INSERTED $b
a put 5 900 60 1 | c
< INSERTED $c
a reserve
< RESERVED $a 1 | a
a bury $a 5
< BURIED
a kick 10
< KICKED 1
a kick 1
< KICKED 1
a stats-job $c
< OK state=ready
a stats-job $b
< OK state=delayed
a kick 10
< KICKED 1
a kick 10
< KICKED 0
"""

SAME["kick_is_for_the_used_tube_and_wakes_a_client_that_waits"] = """
a put 5 1000 60 1 | a
< INSERTED $a
b reserve
< ...
a use $u
< USING $u
a kick 10
< KICKED 0
a use $t
< USING $t
a kick 10
< KICKED 1
b< RESERVED $a 1 | a
"""

SAME["kick_job_takes_a_buried_or_delayed_job"] = """
a put 5 1000 60 1 | a
< INSERTED $a
a put 5 0 60 1 | b
< INSERTED $b
b use $u
< USING $u
b kick-job $a
< KICKED
b kick-job $a
< NOT_FOUND
a reserve-job $b
< RESERVED $b 1 | b
b kick-job $b
< NOT_FOUND
a bury $b 1
< BURIED
b kick-job $b
< KICKED
b stats-job $b
< OK state=ready kicks=1 tube=$t
"""

# --- touch --------------------------------------------------------------------------------

SAME["touch_is_for_the_owner_only"] = """
a put 5 0 60 1 | a
< INSERTED $a
a touch $a
< NOT_FOUND
a reserve
< RESERVED $a 1 | a
b touch $a
< NOT_FOUND
a touch $a
< TOUCHED
"""

# --- watch and ignore ---------------------------------------------------------------------

SAME["watch_and_ignore_count"] = """
A watch $u
< WATCHING 2
A watch $u
< WATCHING 2
A watch $v
< WATCHING 3
A list-tubes-watched
< OK [default $u $v]
A ignore $t
< WATCHING 3
A ignore default
< WATCHING 2
A ignore $u
< WATCHING 1
A ignore $v
< NOT_IGNORED
A list-tubes-watched
< OK [$v]
"""

SAME["a_tube_exists_while_a_client_uses_or_watches_it_or_it_has_a_job"] = """
a stats-tube $u
< NOT_FOUND
b use $u
< USING $u
a stats-tube $u
< OK name=$u current-using=1 current-watching=0 current-jobs-ready=0
b watch $u
< WATCHING 2
a stats-tube $u
< OK current-using=1 current-watching=1
b use $t
< USING $t
b ignore $u
< WATCHING 1
a stats-tube $u
< NOT_FOUND
b use $u
< USING $u
b put 0 0 60 1 | x
< INSERTED $j
b use $t
< USING $t
a stats-tube $u
< OK current-using=0 current-jobs-ready=1 current-jobs-urgent=1 total-jobs=1
a delete $j
< DELETED
a stats-tube $u
< NOT_FOUND
"""

# --- peek ---------------------------------------------------------------------------------

SAME["peek_finds_a_job_in_any_state_and_any_tube"] = """
a put 5 0 60 1 | a
< INSERTED $a
a put 5 1000 60 1 | b
< INSERTED $b
B peek $a
< FOUND $a 1 | a
B peek $b
< FOUND $b 1 | b
a reserve
< RESERVED $a 1 | a
B peek $a
< FOUND $a 1 | a
a bury $a 0
< BURIED
B peek $a
< FOUND $a 1 | a
"""

SAME["peek_of_a_state_is_for_the_used_tube"] = """
a put 5 0 60 1 | a
< INSERTED $a
a put 4 0 60 1 | b
< INSERTED $b
a put 5 1000 60 1 | c
< INSERTED $c
a put 0 0 60 1 | d
< INSERTED $d
a reserve
< RESERVED $d 1 | d
a bury $d 0
< BURIED
a peek-ready
< FOUND $b 1 | b
a peek-delayed
< FOUND $c 1 | c
a peek-buried
< FOUND $d 1 | d
a use $u
< USING $u
a peek-ready
< NOT_FOUND
a peek-delayed
< NOT_FOUND
a peek-buried
< NOT_FOUND
"""

# --- pause --------------------------------------------------------------------------------

SAME["a_paused_tube_gives_no_jobs_until_its_pause_ends"] = """
a put 0 0 60 1 | x
< INSERTED $j
a pause-tube $t 1000
< PAUSED
a stats-tube $t
< OK pause=1000 cmd-pause-tube=1 current-jobs-ready=1
b reserve-with-timeout 0
< TIMED_OUT
mark
a pause-tube $t 1
< PAUSED
b reserve
b< after 1 RESERVED $j 1 | x
"""

SAME["a_pause_of_0_ends_a_pause"] = """
a put 0 0 60 1 | x
< INSERTED $j
a pause-tube $t 1000
< PAUSED
b reserve
< ...
a pause-tube $t 0
< PAUSED
b< RESERVED $j 1 | x
"""

SAME["a_pause_ends_with_its_tube"] = """
a watch $u
< WATCHING 2
a pause-tube $u 1000
< PAUSED
a ignore $u
< WATCHING 1
a stats-tube $u
< NOT_FOUND
b use $u
< USING $u
b put 0 0 60 1 | x
< INSERTED $j
a watch $u
< WATCHING 2
a reserve-with-timeout 0
< RESERVED $j 1 | x
"""

SAME["a_pause_stops_no_puts"] = """
a use $t
< USING $t
a pause-tube $t 1000
< PAUSED
a put 0 0 60 1 | x
< INSERTED $j
a peek-ready
< FOUND $j 1 | x
b watch $u
< WATCHING 2
c use $u
< USING $u
c put 9 0 60 1 | y
< INSERTED $k
b reserve-with-timeout 0
< RESERVED $k 1 | y
a pause-tube $t 0
< PAUSED
"""

# --- stats --------------------------------------------------------------------------------

SAME["stats_of_a_job_follow_it"] = """
a put 7 0 60 3 | abc
< INSERTED $j
a stats-job $j
< OK id=$j tube=$t state=ready pri=7 delay=0 ttr=60 reserves=0 timeouts=0 releases=0 buries=0 \
kicks=0
a reserve
< RESERVED $j 3 | abc
a stats-job $j
< OK state=reserved reserves=1
a release $j 8 100
< RELEASED
a stats-job $j
< OK state=delayed pri=8 delay=100 reserves=1 releases=1
a kick-job $j
< KICKED
a stats-job $j
< OK state=ready kicks=1
a reserve
< RESERVED $j 3 | abc
a bury $j 9
< BURIED
a stats-job $j
< OK state=buried pri=9 reserves=2 buries=1 kicks=1
"""

SAME["stats_of_a_tube_follow_its_jobs"] = """
a put 7 0 60 1 | a
< INSERTED $a
a put 1024 0 60 1 | b
< INSERTED $b
a put 1024 1000 60 1 | c
< INSERTED $c
a put 2000 0 60 1 | d
< INSERTED $d
a stats-tube $t
< OK name=$t current-jobs-urgent=1 current-jobs-ready=3 current-jobs-reserved=0 \
current-jobs-delayed=1 current-jobs-buried=0 total-jobs=4 current-using=1 current-watching=1
a reserve
< RESERVED $a 1 | a
a stats-tube $t
< OK current-jobs-urgent=0 current-jobs-ready=2 current-jobs-reserved=1
a bury $a 0
< BURIED
a stats-tube $t
< OK current-jobs-reserved=0 current-jobs-buried=1
a delete $a
< DELETED
a delete $b
< DELETED
a stats-tube $t
< OK current-jobs-buried=0 current-jobs-ready=1 cmd-delete=2 total-jobs=4
b ignore $u
< WATCHING 1
b reserve-with-timeout 0
< RESERVED $d 1 | d
c reserve
< ...
a stats-tube $t
< OK current-waiting=1 current-using=3 current-watching=3 current-jobs-ready=0
"""

# --- the line -----------------------------------------------------------------------------

SAME["a_second_command_waits_for_the_first"] = """
a reserve
< ...
a list-tube-used
< ...
b put 0 0 60 1 | x
< INSERTED $j
a< RESERVED $j 1 | x
a< USING $t
"""

# --- ends of a TTR ------------------------------------------------------------------------

TIMED["a_job_is_ready_again_when_its_ttr_ends"] = """
a put 5 0 1~ 1 | x
< INSERTED $j
mark
a reserve
< RESERVED $j 1 | x
b reserve
b< after 1~ RESERVED $j 1 | x
b stats-job $j
< before 2~ OK state=reserved reserves=2 timeouts=1
a delete $j
< before 2~ NOT_FOUND
"""

TIMED["deadline_soon_comes_in_the_last_second"] = """
a put 5 0 3~ 1 | x
< INSERTED $j
mark
a reserve
< RESERVED $j 1 | x
a reserve
a< before 3~ after 2~ DEADLINE_SOON
a reserve-with-timeout 0
< before 3~ DEADLINE_SOON
a delete $j
< DELETED
a reserve-with-timeout 0
< TIMED_OUT
"""

TIMED["deadline_soon_does_not_come_while_a_job_is_ready"] = """
a put 5 0 1 1 | x
< INSERTED $j
a put 5 0 100 1 | y
< INSERTED $k
mark
a reserve
< RESERVED $j 1 | x
a reserve
< before 1 RESERVED $k 1 | y
a reserve
< before 1 DEADLINE_SOON
"""

TIMED["touch_begins_the_ttr_anew"] = """
a put 5 0 3~ 1 | x
< INSERTED $j
mark
a reserve
< RESERVED $j 1 | x
sleep 1
a touch $j
< before 3~ TOUCHED
b reserve
b< after 4~ RESERVED $j 1 | x
"""
