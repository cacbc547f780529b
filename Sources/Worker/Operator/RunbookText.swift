// SPDX-License-Identifier: Apache-2.0
/// `python -m docs.runbook_page` generates this file from docs/runbooks.md: the runbook of each alert as HTML.
enum RunbookText {
    static let alerts: Markup = #"""
        <h2 id="objectives">Objectives</h2>
        <p>Over 28 days: 99 % of the accepted pushes within 2 s of Kafka's timestamp; 99.9 % of the outcomes neither
        <code>expired</code> nor dead letters; the oldest unsettled record under 30 s for 99.9 % of the time. A burn
        means that the budget is spent 14.4 times too fast for an hour, 6 times for six hours (<code>page</code>), or
        evenly for three days (<code>ticket</code>). It ends when its shorter window is good again.</p>
        <h3 id="carillonlatencyburn">CarillonLatencyBurn</h3>
        <ul>
        <li><b>Look:</b> "What limits it" (page and dashboard): the cause with the most time. <code>inflight</code> or
        <code>limiter</code>: APNs is slow or allows less (dashboard: row APNs, latency). <code>redis</code>: <a
        href="#carillonredisdegraded">CarillonRedisDegraded</a>. <code>window</code>: one record delays its partition.
        <code>breaker</code>: <a href="#carillonbreakeropen">CarillonBreakerOpen</a>. None of them, and lag: too few
        workers, or too little CPU (page and dashboard: Process).</li>
        <li><b>Do:</b> start more workers, up to the number of partitions; raise <code>limits.connections</code> if
        streams are at their limit; otherwise follow the cause's runbook.</li>
        </ul>
        <h3 id="carillonlossburn">CarillonLossBurn</h3>
        <ul>
        <li><b>Look:</b> "Outcomes without a push or delivery" and "Dead letters". <code>expired</code>: producers set
        a too short <code>expire_at_ms</code>, or records waited too long (lag, an earlier open breaker). Dead
        letters: <a href="#carillondeadletters">CarillonDeadLetters</a>.</li>
        <li><b>Do:</b> remove the cause of the wait. By contract, expired messages are not sent any more.</li>
        </ul>
        <h3 id="carillonageburn">CarillonAgeBurn</h3>
        <ul>
        <li><b>Look:</b> as for <a href="#carillonwatermarkstuck">CarillonWatermarkStuck</a>; both often fire
        together. An app with <code>coalesce.window_s</code> over 30 s causes it by design.</li>
        </ul>
        <h2 id="process">Process</h2>
        <h3 id="carillonabsent">CarillonAbsent</h3>
        <ul>
        <li><b>Means:</b> Prometheus reaches no worker: none runs, or the network policy or the token file
        (<code>http.token_file</code>) blocks it.</li>
        <li><b>Look:</b> <code>kubectl get pods</code>, <code>systemctl status carillon</code>; exit codes: 78 broken
        configuration (<code>carillon check</code>), 64 wrong command line, 70 fatal Kafka error, 75 a taken port or a
        slow drain.</li>
        <li><b>Do:</b> start them. You have as much time as Kafka's retention.</li>
        </ul>
        <h3 id="carillondown">CarillonDown</h3>
        <ul>
        <li><b>Look:</b> the same, for one worker. Killed for memory: more shards or larger windows than
        <code>MemoryMax</code>/<code>limits.memory</code> allows (about 250 MB per shard).</li>
        <li><b>Do:</b> nothing at once: the other workers took its partitions when its session ended.</li>
        </ul>
        <h3 id="carilloncredentialexpiry">CarillonCredentialExpiry</h3>
        <ul>
        <li><b>Do:</b> renew the certificate at Apple and replace the file. Workers try the new one within seconds,
        and the alert ends. "APNs accepts the new credential" in the log confirms it; after "APNs refuses the new
        credential", see <a href="#carilloncredentialrefused">CarillonCredentialRefused</a>. A provider key (.p8) does
        not expire.</li>
        </ul>
        <h3 id="carilloncredentialexpiring">CarillonCredentialExpiring</h3>
        <ul>
        <li><b>Do:</b> as for <a href="#carilloncredentialexpiry">CarillonCredentialExpiry</a>, today.</li>
        </ul>
        <h3 id="carilloncredentialrefused">CarillonCredentialRefused</h3>
        <ul>
        <li><b>Means:</b> a credential's file changed, and it is unusable or APNs refuses it. The old one stays in use
        until the process ends. The alert ends when the files are usable.</li>
        <li><b>Look:</b> <code>/readyz</code> ("a changed credential is not in use", with the reason) and the log.
        <code>carillon check --probe</code> on the same files.</li>
        <li><b>Do:</b> write the complete file, with the right key and password. Do not restart before: a start with a
        broken file fails.</li>
        </ul>
        <h3 id="carillonreloadrefused">CarillonReloadRefused</h3>
        <ul>
        <li><b>Means:</b> a worker got a reload (SIGHUP, <code>systemctl reload</code>) and the file is unusable. The
        worker keeps its configuration. A restart now would fail.</li>
        <li><b>Look:</b> <code>/readyz</code> and the page show <code>configuration: degraded</code> until a reload
        succeeds (the alert ends after 15 minutes). The log: "the configuration cannot be used", a line per problem;
        <code>carillon check --offline --config F</code> prints the same.</li>
        <li><b>Do:</b> correct it and reload again. <code>carillon check --print</code> shows the values that would be
        in effect; <code>carillon_config_info{hash}</code> shows whether all workers agree, and
        <code>carillon_config_pending_keys</code> how many keys wait for a restart.</li>
        </ul>
        <h3 id="carillondeadletters">CarillonDeadLetters</h3>
        <ul>
        <li><b>Look:</b> <code>carillon dlq list --config F</code>: number by cause, topic and app, age, and whether
        they would be accepted today; <code>carillon dlq show --config F --reason R</code> shows some of them in full.
        <code>docs/reasons.md</code> has the rules.</li>
        <li><b>Do:</b> correct the configuration (an unknown app) or the producer. <code>carillon dlq redrive --config
        F --reason R</code> writes records that are accepted today back (<code>--dry-run</code> prints the plan). For
        broken values: <code>carillon record</code> the topic to a file, correct the values, <code>carillon
        replay</code> them to their topic. Duplicates are detected by (app, uid, msg_id, kind) and not pushed
        twice.</li>
        </ul>
        <h3 id="carillonloglost">CarillonLogLost</h3>
        <ul>
        <li><b>Means:</b> standard error did not accept log lines: its disk is full, or its reader (journald, a
        container runtime) stopped. Work continues; the worker never waits for its log.</li>
        <li><b>Look:</b> <code>carillon_log_lines_dropped_total</code>, <code>df</code> of the log's disk.</li>
        <li><b>Do:</b> free space, or repair the reader. The dropped lines are lost; the numbers in
        <code>/metrics</code> are not.</li>
        </ul>
        <h3 id="carillonseriesbudget">CarillonSeriesBudget</h3>
        <ul>
        <li><b>Means:</b> more than 2700 of 3000 time series, usually many apps with many credential sets. Beyond
        3000, values are counted and not shown.</li>
        <li><b>Do:</b> spread apps over several installations (with separate consumer groups).</li>
        </ul>
        <h3 id="carillonloopstuck">CarillonLoopStuck</h3>
        <ul>
        <li><b>Means:</b> the loop of a shard has not turned for five seconds, so its partitions stand still. The
        machine has too little CPU, the process is stopped (a debugger, SIGSTOP), or the program hangs.</li>
        <li><b>Look:</b> <code>/readyz</code> (<code>loop: down</code>, with the seconds), <code>/livez</code> (503
        after ten seconds), <code>carillon_loop_lag_seconds</code>, the load of the machine.</li>
        <li><b>Do:</b> give it CPU. If it hangs, save <code>gdb -p PID -batch -ex 'thread apply all bt'</code>, then
        restart it: nothing is lost, the next owner reads from the committed offsets. systemd's watchdog and the probe
        of Kubernetes restart it by themselves.</li>
        </ul>
        <h3 id="carillondescriptorslow">CarillonDescriptorsLow</h3>
        <ul>
        <li><b>Look:</b> <code>/statusz</code> for connections; operators' clients (at most 64); the limit itself
        (<code>LimitNOFILE=</code>, <code>ulimit -n</code>).</li>
        <li><b>Do:</b> raise the limit to 65536; if that is impossible, use fewer shards or
        <code>limits.connections</code>.</li>
        </ul>
        <h2 id="kafka">Kafka</h2>
        <h3 id="carillonclockoff">CarillonClockOff</h3>
        <ul>
        <li><b>Means:</b> for two minutes the worker's clock has differed by more than 60 s from that of Redis, or
        from the append times of a broker (<code>reference</code>). Redis' time and the worker's clock are compared
        each five seconds.</li>
        <li><b>Look:</b> <code>carillon_clock_skew_seconds</code> of all workers. One worker differs: its clock is
        wrong. All differ from <code>redis</code>: Redis' clock is. Only <code>kafka</code> differs: the broker's
        is.</li>
        <li><b>Do:</b> repair NTP on that machine. The worker goes on by its last right time, and nothing expires by
        the jump.</li>
        </ul>
        <h3 id="carillonclockwrong">CarillonClockWrong</h3>
        <ul>
        <li><b>Means:</b> the difference from Redis is above 300 s. The worker reads nothing, and <code>/readyz</code>
        is 503 (<code>clock: down</code>).</li>
        <li><b>Look, do:</b> as for <a href="#carillonclockoff">CarillonClockOff</a>. Reading goes on by itself,
        within seconds.</li>
        </ul>
        <h3 id="carillondatagap">CarillonDataGap</h3>
        <ul>
        <li><b>Means:</b> offsets were deleted before they were read: retention was shorter than the outage or the
        lag. Those records are lost here.</li>
        <li><b>Look:</b> the log: "records were deleted before they were read", with the count; retention of the
        topic; how long the worker was away.</li>
        <li><b>Do:</b> raise the topic's retention at once. The backend may send the records again: duplicates are
        detected.</li>
        </ul>
        <h3 id="carillonpartitionrestarted">CarillonPartitionRestarted</h3>
        <ul>
        <li><b>Means:</b> the broker gave an offset below the one that was due: the topic was created again, or a
        leader was elected that lacks the log's end. The worker reads the partition from there. Marks keep ended work
        from being repeated.</li>
        <li><b>Look:</b> the log line "a partition began again at a lower offset" names topic, partition and both
        offsets. The brokers' logs say whether a leader election was unclean, or who deleted the topic.</li>
        <li><b>Do:</b> nothing for the worker. Records that the broker lost are lost: let producers send them again.
        Set <code>unclean.leader.election.enable=false</code> and at least two in-sync replicas.</li>
        <li><b>By itself:</b> the alert ends after 10 min.</li>
        </ul>
        <h3 id="carillonwatermarkstuck">CarillonWatermarkStuck</h3>
        <ul>
        <li><b>Look:</b> <code>/readyz</code>: a missing part explains it. <code>/statusz</code>: open work by phase,
        breakers, Redis. "What limits it".</li>
        <li><b>Do:</b> follow the runbook of the missing part. If none is missing and the age rises: keep
        <code>/statusz</code> and the log, then restart this worker. Its partitions continue elsewhere, and ended work
        is not repeated. Report it.</li>
        </ul>
        <h3 id="carillonlaggrowing">CarillonLagGrowing</h3>
        <ul>
        <li><b>Means:</b> the oldest record that the group has not committed is older than a minute, and its age
        grows.</li>
        <li><b>Look:</b> "What limits it"; CPU; a flood of one app (<code>limits.share</code> parks its surplus) or of
        all apps; partitions per worker.</li>
        <li><b>Do:</b> start more workers or shards, up to the partitions. For a flood that needs no push, the backend
        sets <code>push.enabled: false</code>. Scale in only afterwards; each change moves partitions.</li>
        </ul>
        <h3 id="carillonnoassignment">CarillonNoAssignment</h3>
        <ul>
        <li><b>Means:</b> Kafka is away (<code>/readyz</code>: "no broker answers"; the page: which broker), topics or
        rights are missing, or the group does not settle. Without an assigned partition the lag is unknown: page and
        <code>carillon top</code> say so, and <code>carillon_kafka_lag_*</code> are absent.</li>
        <li><b>Look:</b> <code>carillon check</code>: brokers, topics, rights (which one is missing, and the
        <code>kafka-acls</code> lines). <code>/readyz</code> names topics that the group has not assigned. The log's
        Kafka lines. If the group does not settle: <a href="#carillonrebalancestorm">CarillonRebalanceStorm</a>.</li>
        <li><b>Do:</b> correct the problems that <code>check</code> names. Missing topics: the Job
        <code>carillon-topics</code>, or by hand. If brokers answer, <code>check</code> is well and nothing is
        assigned after a minute: restart this worker.</li>
        </ul>
        <h3 id="carillonrebalancestorm">CarillonRebalanceStorm</h3>
        <ul>
        <li><b>Look:</b> restarts (annotations "Start"), workers killed for memory, autoscaling that oscillates
        (<code>scaled-object.yaml</code>), a lossy network between worker and coordinator;
        <code>session.timeout.ms</code>.</li>
        <li><b>Do:</b> stop the cause: pause the autoscaler, end the rollout. For a rollout of many workers, replace
        several per step: it ends sooner, because each step moves partitions.</li>
        </ul>
        <h3 id="carilloncommitsfailing">CarillonCommitsFailing</h3>
        <ul>
        <li><b>Look:</b> the log's Kafka lines; the group's rights; the coordinator's broker.</li>
        <li><b>Do:</b> correct it before the next restart: settled records without commit are read again then, and
        skipped by their marks.</li>
        </ul>
        <h3 id="carillonrecordsrefused">CarillonRecordsRefused</h3>
        <ul>
        <li><b>Look:</b> the log names topic and error: <code>TOPIC_AUTHORIZATION_FAILED</code>,
        <code>CLUSTER_AUTHORIZATION_FAILED</code> (nothing may be written), <code>NOT_ENOUGH_REPLICAS</code>,
        <code>MSG_SIZE_TOO_LARGE</code> (such a result is shortened, another record becomes a dead letter).</li>
        <li><b>Do:</b> <code>WRITE</code> on the output topics, before Kafka 2.8 also <code>IDEMPOTENT_WRITE</code> on
        the cluster; brokers; <code>max.message.bytes</code>. Offsets wait until the brokers accept the outcomes.</li>
        </ul>
        <h2 id="apns">APNs</h2>
        <h3 id="carillonbreakeropen">CarillonBreakerOpen</h3>
        <ul>
        <li><b>Means:</b> APNs answered 503 many times in a row to one app and environment. One push tests it now and
        then; the others go to <code>carillon.parked</code> and return within a second of its end.</li>
        <li><b>Look:</b> Apple's system status page; other apps and environments.</li>
        <li><b>Do:</b> wait. Pushes expire at their <code>expire_at_ms</code>.</li>
        </ul>
        <h3 id="carillonapnsunreachable">CarillonApnsUnreachable</h3>
        <ul>
        <li><b>Means:</b> connections to APNs fail before any push is accepted, and none is open. Waiting pushes go to
        <code>carillon.parked</code>.</li>
        <li><b>Look:</b> <code>/readyz</code> and the log ("cannot connect to APNs") give the cause: name resolution,
        refused, certificate. All apps: the network. One app: its <code>endpoint</code>, <code>proxy</code> or
        <code>ca_file</code>.</li>
        <li><b>Do:</b> repair the outgoing path (443 or 2197 to 17.0.0.0/8, or the proxy).</li>
        </ul>
        <h3 id="carillonnostreams">CarillonNoStreams</h3>
        <ul>
        <li><b>Means:</b> connections are open, and their SETTINGS allow no request. <code>/readyz</code> says
        "connections to APNs carry no push". APNs does so for a moment after a connection with a bad token; for
        minutes, a proxy or firewall answers in its place.</li>
        <li><b>Look:</b> <code>carillon_apns_streams_limit</code> and <code>carillon_apns_connections</code> of the
        app; whether other apps and machines push.</li>
        <li><b>Do:</b> check the proxy (<code>apps[].proxy</code>) and the path to APNs; <code>carillon check</code>
        connects as the worker does. Pushes wait in <code>carillon.parked</code> and continue by themselves.</li>
        </ul>
        <h3 id="carillonauthrejected">CarillonAuthRejected</h3>
        <ul>
        <li><b>Means:</b> APNs answered 403 to the credential (not an expired token: the worker signs that again). The
        key is revoked or foreign, the team or key id is wrong, or the certificate is of another app. The worker tries
        again every minute.</li>
        <li><b>Look:</b> the log has Apple's reason (<code>InvalidProviderToken</code>, <code>BadCertificate</code>,
        …). <code>carillon check --probe --config F</code> asks APNs again and distinguishes key, environment and
        topic.</li>
        <li><b>Do:</b> replace the key file. The new key takes over within seconds, and pushes go with the next test,
        within a minute.</li>
        <li><b>Rotation:</b> add the new key at Apple and replace the file. Wait for "APNs accepts the new credential"
        in every worker's log: it comes with the first accepted push. Only then revoke the old key. "The new
        credential is being tried" proves nothing; after "APNs refuses the new credential; the old one stays in use" a
        revocation stops all pushes. If a worker has no pushes, <code>carillon check --probe --config F</code> asks
        APNs with the new file. A leaked key: revoke it first.</li>
        </ul>
        <h3 id="carillonnothingaccepted">CarillonNothingAccepted</h3>
        <ul>
        <li><b>Means:</b> APNs answered pushes and accepted none for five minutes, although no breaker is open and the
        credential is accepted. The page links here also if APNs accepts some, and most of the others wait for
        APNs.</li>
        <li><b>Look:</b> page or <code>carillon top</code>: reasons, and answers that refuse pushes.
        <code>retry_after</code> (429 <code>TooManyRequests</code>): too many pushes to the same devices.
        <code>unavailable</code>: APNs answers 503 (<a href="#carillonbreakeropen">CarillonBreakerOpen</a>) or cannot
        be reached (<a href="#carillonapnsunreachable">CarillonApnsUnreachable</a>). <code>credential</code>: <a
        href="#carillonauthrejected">CarillonAuthRejected</a>. <code>BadDeviceToken</code>,
        <code>DeviceTokenNotForTopic</code>: <a href="#carillonmassinvalidation">CarillonMassInvalidation</a>.
        <code>BadTopic</code> and similar: <a href="#carillonmisconfigured">CarillonMisconfigured</a>.</li>
        <li><b>Do:</b> follow the reason's runbook. 429: parked pushes return by themselves;
        <code>coalesce.window_s</code> sends fewer.</li>
        </ul>
        <h3 id="carillonmisconfigured">CarillonMisconfigured</h3>
        <ul>
        <li><b>Look:</b> <code>carillon_apns_alarms_total{reason}</code>, and <code>docs/reasons.md</code>:
        <code>BadTopic</code>, <code>TopicDisallowed</code>: the app's <code>topic</code> or the key's rights;
        <code>PayloadTooLarge</code>, <code>BadCollapseId</code> and similar: a producer, or this program.</li>
        <li><b>Do:</b> correct <code>topic</code> and environment; report errors of this program.</li>
        </ul>
        <h3 id="carillondeadconnections">CarillonDeadConnections</h3>
        <ul>
        <li><b>Means:</b> connections stopped answering PING: a device in the network forgets them.</li>
        <li><b>Look:</b> firewalls and NAT with short idle times; a proxy; whether all environments fail at once.</li>
        <li><b>Do:</b> raise their idle time. Pushes are sent again on other connections; <a
        href="#carillonambiguoushigh">CarillonAmbiguousHigh</a> shows how many may be doubled.</li>
        </ul>
        <h3 id="carillongoawaystorm">CarillonGoawayStorm</h3>
        <ul>
        <li><b>Look:</b> <code>carillon_apns_goaway_total{reason}</code>. <code>Shutdown</code> or none: Apple moves
        load, wait. <code>TooManyProviderTokenUpdates</code>: clocks, or two installations that sign with one key.
        Others: <code>docs/reasons.md</code>.</li>
        <li><b>Do:</b> usually nothing: pushes above the last id are sent again and cannot double.</li>
        </ul>
        <h3 id="carillonambiguoushigh">CarillonAmbiguousHigh</h3>
        <ul>
        <li><b>Means:</b> pushes end without an answer (silence for <code>answer_s</code>, lost connections). Each is
        sent again with the same apns-id, at most <code>unknown_tries</code> times. A push that APNs accepted already
        may appear twice.</li>
        <li><b>Look:</b> <a href="#carillondeadconnections">CarillonDeadConnections</a>, APNs' latency, packet
        loss.</li>
        <li><b>Do:</b> repair the network path. To repeat nothing at the price of some losses:
        <code>limits.unknown_tries: 0</code>.</li>
        </ul>
        <h3 id="carillonretrybudgetempty">CarillonRetryBudgetEmpty</h3>
        <ul>
        <li><b>Means:</b> so many pushes need another try that the budget (a tenth of the successes) is used up; they
        wait.</li>
        <li><b>Look:</b> <code>carillon_retries_total{reason}</code> and the dashboard's "Answers": 429
        (<code>TooManyRequests</code> is per device), 500, 503.</li>
        <li><b>Do:</b> 5xx: wait for Apple. 429: a producer sends too much to few devices;
        <code>coalesce.window_s</code> helps.</li>
        </ul>
        <h3 id="carillonmassinvalidation">CarillonMassInvalidation</h3>
        <ul>
        <li><b>Means:</b> APNs called over 5 % of the tried tokens dead; they were removed, or kept by the brake.</li>
        <li><b>Look:</b> <code>carillon_tokens_invalidated_total{reason}</code>. <code>BadDeviceToken</code>: sandbox
        tokens sent to production or the reverse (<code>env</code> of the binds). <code>DeviceTokenNotForTopic</code>:
        <code>topic</code> or key. <code>Unregistered</code> (410): many users deleted a new release, an old database
        was restored, or Apple re-tuned 410. Apple decides when it begins to answer 410 for a token that is out of
        use, and has changed the rule (July 2025): many 410s in all apps at once, no other reason, and no change on
        your side.</li>
        <li><b>Do:</b> correct the cause first. Then <code>carillon tokens restore --config F --app A --cause C
        --since T</code> restores tokens that were not bound since (seven days). If Apple re-tuned 410, restore
        nothing: the tokens are out of use, an app that is still installed binds again at its next start, and the
        number falls (Apple: to a higher level than before). If the brake keeps them, see <a
        href="#carillonremovalbrake">CarillonRemovalBrake</a>.</li>
        </ul>
        <h3 id="carillonremovalbrake">CarillonRemovalBrake</h3>
        <ul>
        <li><b>Means:</b> the same, and the brake (<code>limits.removals</code>) keeps tokens since then. It ends
        <code>cool_down_s</code> after the last sign.</li>
        <li><b>Do:</b> as for <a href="#carillonmassinvalidation">CarillonMassInvalidation</a>. For a real spike: let
        it pass in portions, or raise <code>limits.removals.share</code>.</li>
        </ul>
        <h2 id="redis">Redis</h2>
        <h3 id="carillonredisdown">CarillonRedisDown</h3>
        <ul>
        <li><b>Means:</b> this worker could not use Redis for a minute. Nothing is dropped or guessed: read records
        wait, then reading stops.</li>
        <li><b>Look:</b> <code>/readyz</code> has the cause. <code>unreachable</code>, <code>timeout</code>: dead,
        hung, or the network. <code>authentication</code>, <code>no_permission</code>: login or rights of
        <code>redis.user</code>. <code>refuses writes</code>: <a
        href="#carillonredisrefuseswrites">CarillonRedisRefusesWrites</a>. <code>lost its tokens</code>: <a
        href="#carillontokenloss">CarillonTokenLoss</a>. <code>carillon check</code> asks again and prints Redis' own
        message.</li>
        <li><b>Do:</b> start it with its data (append-only file); rights: the <code>ACL SETUSER</code> line that
        <code>carillon check --acl</code> prints. Workers connect again within 5 s. Do not point them to an empty
        Redis: that is <a href="#carillontokenloss">CarillonTokenLoss</a>.</li>
        </ul>
        <h3 id="carillonredisdegraded">CarillonRedisDegraded</h3>
        <ul>
        <li><b>Look:</b> <code>SLOWLOG GET</code>, <code>LATENCY LATEST</code>, CPU of the one thread, persistence
        (<code>BGSAVE</code> forks, slow disk with <code>appendfsync always</code>), swap, the network. Row Redis: the
        kind of command.</li>
        <li><b>Do:</b> give it its own machine; reduce its other clients; split huge groups (<code>g:</code>
        keys).</li>
        </ul>
        <h3 id="carillonredisrefuseswrites">CarillonRedisRefusesWrites</h3>
        <ul>
        <li><b>Look:</b> <code>INFO memory</code> (full; <code>maxmemory-policy</code> must be
        <code>noeviction</code>), <code>INFO replication</code> (a replica, too few replicas), <code>INFO
        persistence</code> (a failed save stops writes). <code>/readyz</code> names it.</li>
        <li><b>Do:</b> add memory; make the server a master again (<code>REPLICAOF NO ONE</code>), or correct
        <code>redis.url</code>. Owed claims are in <code>carillon.parked</code> and are written as soon as Redis
        accepts writes.</li>
        </ul>
        <h3 id="carillontokenloss">CarillonTokenLoss</h3>
        <ul>
        <li><b>Means:</b> half of the keys or more disappeared from one count to the next. Reading has stopped, so
        that no user who had a token ends as <code>no_token</code>.</li>
        <li><b>Look:</b> <code>INFO server</code> (a new <code>run_id</code>: restarted empty), <code>INFO
        persistence</code>, FLUSHALL (<code>MONITOR</code> is too late: ask the operators), eviction.</li>
        <li><b>Do:</b> restore the dump or promote the replica that has the keys: work continues when four fifths are
        back. If they are lost for good: <code>carillon tokens accept --config F</code>, and clients bind again when
        they start. After a FLUSHALL with an append-only file: <code>SHUTDOWN NOSAVE</code> before the file is
        rewritten, remove the FLUSHALL at the end of <code>appendonlydir/*.incr.aof</code>, and start Redis.</li>
        </ul>
        <h3 id="carillonredisolderdata">CarillonRedisOlderData</h3>
        <ul>
        <li><b>Means:</b> a server of Redis returned with data of an earlier time. Workers read no events and decide
        nothing with that data until they have applied <code>im.user-state</code> since then again, so no text goes to
        a phone that changed hands.</li>
        <li><b>Look:</b> the log line "Redis returned with older data" names the server and the time of its data,
        "Redis has the user state of another Kafka cluster or topic" a move of Kafka;
        <code>carillon_state_replayed_total</code> rises. <code>INFO persistence</code> and the orchestrator's events
        say why it restarted from an old snapshot.</li>
        <li><b>Do:</b> wait. If the log says "user state cannot be read again yet", repair Kafka. Turn on the
        append-only file, and <code>min-replicas-to-write</code>, so that this does not happen again. To go on without
        the missing user state: <code>carillon tokens accept --config F</code>.</li>
        <li><b>What stays lost:</b> badges counted since then until the next report or read, and duplicate marks.
        Binds older than the retention of <code>im.user-state</code> are not applied again: keep it as long as your
        oldest snapshot.</li>
        </ul>
        """#
}
