// SPDX-License-Identifier: Apache-2.0
/// `python -m docs.runbook_page` generates this file from docs/runbooks.md: the symptoms and the causes without an alert as HTML.
extension RunbookText {
    static let symptoms: Markup = #"""
        <h2 id="symptoms-causes-and-actions">Symptoms, causes and actions</h2>
        <p>Each fault was caused on purpose and found with only the page, <code>/readyz</code> and the alert. "By
        itself" means: once the cause is gone, the worker recovers without action.</p>
        <table role="table"><thead role="rowgroup"><tr role="row"><th role="columnheader"
        scope="col"><code>/readyz</code> and the page</th><th role="columnheader" scope="col">cause</th><th
        role="columnheader" scope="col">alert</th><th role="columnheader" scope="col">action</th><th
        role="columnheader" scope="col">recovery</th></tr></thead>
        <tbody role="rowgroup">
        <tr role="row"><th role="rowheader" scope="row"><code>redis: down: … unreachable: refused</code> (or
        <code>timeout</code>)</th>
        <td role="cell" data-label="cause">Redis is dead or cut off</td>
        <td role="cell" data-label="alert"><a href="#carillonredisdown">CarillonRedisDown</a></td>
        <td role="cell" data-label="action">start it, with its data</td>
        <td role="cell" data-label="recovery">by itself, within 5 s</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>redis: down: … no_permission</code> or
        <code>authentication</code></th>
        <td role="cell" data-label="cause">the Redis user lacks a right, or the login is wrong</td>
        <td role="cell" data-label="alert"><a href="#carillonredisdown">CarillonRedisDown</a></td>
        <td role="cell" data-label="action">the <code>ACL SETUSER</code> line of <code>carillon check
        --acl</code></td>
        <td role="cell" data-label="recovery">by itself, within 5 s</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>redis: down: … refuses writes: read_only</code>
        (<code>out_of_memory</code>, <code>misconf</code>, <code>noreplicas</code>)</th>
        <td role="cell" data-label="cause">it is a replica (it is full, cannot save, or has too few replicas); pushes
        continue without a badge</td>
        <td role="cell" data-label="alert"><a href="#carillonredisrefuseswrites">CarillonRedisRefusesWrites</a>, <a
        href="#carillonredisdown">CarillonRedisDown</a></td>
        <td role="cell" data-label="action">use the master's address, or make it the master; memory</td>
        <td role="cell" data-label="recovery">by itself, at once</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>redis: down: … lost its tokens</code></th>
        <td role="cell" data-label="cause">Redis was emptied, or started without its data</td>
        <td role="cell" data-label="alert"><a href="#carillontokenloss">CarillonTokenLoss</a>, <a
        href="#carillonredisdown">CarillonRedisDown</a></td>
        <td role="cell" data-label="action">restore the keys, or <code>carillon tokens accept</code></td>
        <td role="cell" data-label="recovery">after either</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>redis: down: … has data of …, older than
        before</code></th>
        <td role="cell" data-label="cause">a snapshot was restored, a replica that was cut off became master, or
        Kafka's cluster is another one</td>
        <td role="cell" data-label="alert"><a href="#carillonredisolderdata">CarillonRedisOlderData</a></td>
        <td role="cell" data-label="action">nothing: user state since then is applied again</td>
        <td role="cell" data-label="recovery">by itself, within seconds to minutes</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>clock: degraded</code> (<code>clock: down</code>)</th>
        <td role="cell" data-label="cause">the clock of this machine, of Redis or of a broker is wrong</td>
        <td role="cell" data-label="alert"><a href="#carillonclockoff">CarillonClockOff</a>, <a
        href="#carillonclockwrong">CarillonClockWrong</a></td>
        <td role="cell" data-label="action">NTP on that machine</td>
        <td role="cell" data-label="recovery">by itself, within seconds</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>app …: degraded: APNs accepted only … of …, most by
        Unregistered</code> (or <code>BadDeviceToken</code>)</th>
        <td role="cell" data-label="cause">the wrong environment, topic or key, old tokens, or Apple re-tuned 410</td>
        <td role="cell" data-label="alert"><a href="#carillonmassinvalidation">CarillonMassInvalidation</a></td>
        <td role="cell" data-label="action">correct it, then <code>carillon tokens restore</code></td>
        <td role="cell" data-label="recovery">within three minutes</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>app …: degraded: connections to APNs carry no
        push</code></th>
        <td role="cell" data-label="cause">the peer allows no streams</td>
        <td role="cell" data-label="alert"><a href="#carillonnostreams">CarillonNoStreams</a></td>
        <td role="cell" data-label="action">the proxy, the path to APNs</td>
        <td role="cell" data-label="recovery">by itself</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>redis: degraded: slow</code></th>
        <td role="cell" data-label="cause">Redis is overloaded, or its machine is</td>
        <td role="cell" data-label="alert"><a href="#carillonredisdegraded">CarillonRedisDegraded</a></td>
        <td role="cell" data-label="action">CPU, slow commands of others</td>
        <td role="cell" data-label="recovery">within three minutes</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>loop: down</code></th>
        <td role="cell" data-label="cause">a shard's loop does not turn</td>
        <td role="cell" data-label="alert"><a href="#carillonloopstuck">CarillonLoopStuck</a></td>
        <td role="cell" data-label="action">CPU, restart</td>
        <td role="cell" data-label="recovery">with the restart</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>kafka: degraded: began again at a lower offset
        …</code></th>
        <td role="cell" data-label="cause">a topic was created again, or lost its end</td>
        <td role="cell" data-label="alert"><a href="#carillonpartitionrestarted">CarillonPartitionRestarted</a></td>
        <td role="cell" data-label="action">the brokers</td>
        <td role="cell" data-label="recovery">by itself, after ten minutes</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>kafka: down: may write no record: …</code></th>
        <td role="cell" data-label="cause">the worker's user may write to no topic; nothing is read until then</td>
        <td role="cell" data-label="alert"><a href="#carillonrecordsrefused">CarillonRecordsRefused</a></td>
        <td role="cell" data-label="action">Write on the output topics</td>
        <td role="cell" data-label="recovery">by itself, within seconds</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>kafka: degraded: … has 8 partitions, and the group reads
        4 of them</code></th>
        <td role="cell" data-label="cause">new partitions that no client has noticed</td>
        <td role="cell" data-label="alert">none</td>
        <td role="cell" data-label="action">restart a worker</td>
        <td role="cell" data-label="recovery">with the next forming of the group</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>kafka: degraded: Kafka times of … are not in
        milliseconds</code></th>
        <td role="cell" data-label="cause">a producer writes seconds; such a time counts as absent</td>
        <td role="cell" data-label="alert">none</td>
        <td role="cell" data-label="action">that producer</td>
        <td role="cell" data-label="recovery">by itself, after ten minutes</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>app …: down: a credential cannot be used: …</code></th>
        <td role="cell" data-label="cause">an expired certificate or an unreadable key, at the start or since</td>
        <td role="cell" data-label="alert"><a href="#carilloncredentialrefused">CarillonCredentialRefused</a></td>
        <td role="cell" data-label="action">replace the files</td>
        <td role="cell" data-label="recovery">by itself, within seconds</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>redis: down: workers of the consumer group … use the
        same Redis</code></th>
        <td role="cell" data-label="cause">two groups on one Redis; this worker ends with 78</td>
        <td role="cell" data-label="alert"><a href="#carillonredisdown">CarillonRedisDown</a></td>
        <td role="cell" data-label="action">a Redis for each group</td>
        <td role="cell" data-label="recovery">with the restart</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>kafka: down: no broker answers, so no partition is
        assigned</code></th>
        <td role="cell" data-label="cause">Kafka is away</td>
        <td role="cell" data-label="alert"><a href="#carillonnoassignment">CarillonNoAssignment</a></td>
        <td role="cell" data-label="action">the brokers; <code>carillon check</code> prints librdkafka's messages</td>
        <td role="cell" data-label="recovery">by itself</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>app …: degraded: APNs refuses the credential:
        InvalidProviderToken</code></th>
        <td role="cell" data-label="cause">a wrong or revoked key, at the start or later</td>
        <td role="cell" data-label="alert"><a href="#carillonauthrejected">CarillonAuthRejected</a></td>
        <td role="cell" data-label="action">replace the key file</td>
        <td role="cell" data-label="recovery">by itself, within a minute</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>app …: down: no connection to APNs: refused
        …</code></th>
        <td role="cell" data-label="cause">the network path to APNs is closed</td>
        <td role="cell" data-label="alert"><a href="#carillonapnsunreachable">CarillonApnsUnreachable</a></td>
        <td role="cell" data-label="action">firewall, proxy, name server</td>
        <td role="cell" data-label="recovery">by itself, within seconds</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>app …: down: APNs reports that it is unavailable</code>,
        breaker open</th>
        <td role="cell" data-label="cause">APNs answers 503</td>
        <td role="cell" data-label="alert"><a href="#carillonbreakeropen">CarillonBreakerOpen</a></td>
        <td role="cell" data-label="action">wait</td>
        <td role="cell" data-label="recovery">by itself, within seconds</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>app …: degraded: APNs accepted none of …, most by
        retry_after</code></th>
        <td role="cell" data-label="cause">APNs answers 429 to everything</td>
        <td role="cell" data-label="alert"><a href="#carillonnothingaccepted">CarillonNothingAccepted</a></td>
        <td role="cell" data-label="action">send less per device</td>
        <td role="cell" data-label="recovery">by itself</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>app …: degraded: removal of dead tokens is stopped …:
        BadDeviceToken</code>, a brake</th>
        <td role="cell" data-label="cause">the wrong environment, topic or key</td>
        <td role="cell" data-label="alert"><a href="#carillonmassinvalidation">CarillonMassInvalidation</a>, <a
        href="#carillonremovalbrake">CarillonRemovalBrake</a></td>
        <td role="cell" data-label="action">correct it, then <code>carillon tokens restore</code></td>
        <td role="cell" data-label="recovery">the brake ends after <code>cool_down_s</code></td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>events: degraded: … became dead letters</code>, with the
        rule</th>
        <td role="cell" data-label="cause">bad records</td>
        <td role="cell" data-label="alert"><a href="#carillondeadletters">CarillonDeadLetters</a></td>
        <td role="cell" data-label="action"><code>carillon dlq list</code>, the producer</td>
        <td role="cell" data-label="recovery">other records never stopped</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row">nothing; <code>no_token</code> with an empty <code>uid</code>
        for every message of a group, and the log's "the members of a group cannot be read"</th>
        <td role="cell" data-label="cause">the key <code>g:{app:group}</code> has another type than a hash, or is too
        large</td>
        <td role="cell" data-label="alert">none</td>
        <td role="cell" data-label="action">the backend writes it again as a hash; then send the messages again</td>
        <td role="cell" data-label="recovery">with the next message</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>system: degraded: … log lines were lost</code></th>
        <td role="cell" data-label="cause">the log's disk is full, or its reader stopped</td>
        <td role="cell" data-label="alert"><a href="#carillonloglost">CarillonLogLost</a></td>
        <td role="cell" data-label="action">free space, or the reader</td>
        <td role="cell" data-label="recovery">by itself</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>configuration: degraded: the file cannot be
        used</code></th>
        <td role="cell" data-label="cause">a reload of a broken file</td>
        <td role="cell" data-label="alert"><a href="#carillonreloadrefused">CarillonReloadRefused</a></td>
        <td role="cell" data-label="action">correct it, reload again</td>
        <td role="cell" data-label="recovery">with the reload</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row"><code>draining</code></th>
        <td role="cell" data-label="cause">SIGTERM: it ends within <code>drain_s</code></td>
        <td role="cell" data-label="alert">none</td>
        <td role="cell" data-label="action">none</td>
        <td role="cell" data-label="recovery">the other workers take over</td>
        </tr>
        <tr role="row"><th role="rowheader" scope="row">no answer</th>
        <td role="cell" data-label="cause">the process is dead (kill -9, memory)</td>
        <td role="cell" data-label="alert"><a href="#carillondown">CarillonDown</a>, <a
        href="#carillonabsent">CarillonAbsent</a></td>
        <td role="cell" data-label="action">start it</td>
        <td role="cell" data-label="recovery">it continues at the committed offsets</td>
        </tr>
        </tbody></table>
        <p>If standard error is closed from the start (<code>2&gt;&amp;-</code>), there is no log, and no lost line
        can be counted.</p>
        """#

    static let withoutAlert: Markup = #"""
        <h2 id="without-an-alert">Without an alert</h2>
        <ul>
        <li><b>Safe replay.</b> <code>carillon record --config F --topic im.events --from T --until-end --out
        events.ndjson</code>, then <code>carillon replay --config F --in events.ndjson</code>: within 24 h (duplicate
        marks) nothing is pushed twice.</li>
        <li><b>A badge is wrong.</b> <code>carillon user</code> shows the present number, <code>carillon trace</code>
        shows which messages were counted. The client's <code>badge_report</code> replaces it.</li>
        <li><b>One user complains.</b> <code>carillon trace --config F --app A --user U --msg M</code>, up to
        <code>trace.ttl_h</code> hours back (72); then <code>carillon explain</code> with the event.</li>
        <li><b>Suspected duplicates.</b> In <code>push.results</code>, one <code>pid</code> twice is one push recorded
        twice; two <code>pid</code>s for one message and device are two tokens. <code>attempts</code> above 1: <a
        href="#carillonambiguoushigh">CarillonAmbiguousHigh</a>.</li>
        <li><b>Rollout and rollback.</b> One worker at a time, the next when <code>/readyz</code> is 200. Versions
        share their Redis keys; <code>CHANGELOG.md</code> names exceptions.</li>
        <li><b>Broker maintenance.</b> Workers follow leaders by themselves; watch commits and lag.</li>
        </ul>
        <h3 id="redis-fails-over">Redis fails over</h3>
        <ul>
        <li><b>Means:</b> another process serves the users than before. Planned: maintenance. Unplanned: the master
        died, or Sentinels or the cluster replaced it.</li>
        <li><b>Look:</b> <code>/readyz</code> during it; the log: "another Redis process serves users: repeating their
        newest changes", with their number; <code>carillon_redis_connects_total</code>. Of a cluster: dashboard, row
        Redis, "by node"; <code>CLUSTER NODES</code>.</li>
        <li><b>Do, before a planned one:</b> on a Cluster <code>CLUSTER FAILOVER</code> on the replica: it loses and
        doubles nothing. With Sentinels first <code>CONFIG SET min-replicas-to-write</code> on the master to the
        number of its replicas, then <code>SENTINEL FAILOVER</code>, then set it back (why).</li>
        <li><b>Do, after an unplanned one:</b> nothing at the worker. It finds the new master, reads open work again
        and repeats the newest changes of user state. Failover lists the losses. If the old master had no limit
        (<code>min-replicas-to-write</code>) and was cut off for long, its writes of that time are lost: the clients'
        next reports correct badges, and clients bind again when they start.</li>
        <li><b>Do not</b> point workers to a replica by hand: it refuses writes (<a
        href="#carillonredisrefuseswrites">CarillonRedisRefusesWrites</a>).</li>
        </ul>
        <h3 id="redis-is-too-small">Redis is too small</h3>
        <ul>
        <li><b>Means:</b> memory near <code>maxmemory</code>, or its one thread at 100 % of a core.
        <code>docs/capacity.md</code> has the needs.</li>
        <li><b>Look:</b> <code>INFO memory</code>, <code>INFO cpu</code>, <a
        href="#carillonredisdegraded">CarillonRedisDegraded</a>,
        <code>carillon_backpressure_seconds_total{cause="redis"}</code>.</li>
        <li><b>Do, more memory on one server:</b> <code>CONFIG SET maxmemory</code>, and in its file. Or attach a
        larger machine as a replica, wait for <code>master_link_status:up</code>, then a planned failover as
        above.</li>
        <li><b>Do, less data:</b> a lower <code>trace.sample</code> or <code>trace.ttl_h</code> (restart the workers).
        Old marks expire within a day.</li>
        <li><b>Do, a cluster with more masters:</b> add them, then <code>redis-cli --cluster reshard</code> or
        <code>rebalance</code>. Workers follow; users of a moving slot wait for the move. Keys of one user are in one
        slot. Watch <code>carillon_redis_redirects_total</code>.</li>
        <li><b>Do, from one server to a cluster:</b> the worker reads one place only. Stop the workers, copy the keys
        (<code>redis-cli --cluster import</code> with <code>--cluster-copy</code>), set <code>redis.url</code> to the
        list of nodes, run <code>carillon check</code>, start; gateways and backend write to the cluster from then on.
        Kafka keeps the events.</li>
        </ul>
        <h3 id="redis-may-evict-keys">Redis may evict keys</h3>
        <ul>
        <li><b>Means:</b> <code>maxmemory-policy</code> is not <code>noeviction</code>. When memory is full, Redis
        deletes tokens, marks and badges instead of refusing writes: users end as <code>no_token</code>, and messages
        may be pushed twice.</li>
        <li><b>Look:</b> <code>/readyz</code> and the log: "Redis may evict state", and after an eviction "Redis
        evicted keys"; <code>carillon check</code> warns per server; <code>INFO stats</code>:
        <code>evicted_keys</code> above 0 proves it.</li>
        <li><b>Do:</b> <code>CONFIG SET maxmemory-policy noeviction</code> on every master and replica, and in their
        files. If nothing was evicted, that is all. Otherwise it is <a
        href="#carillontokenloss">CarillonTokenLoss</a>, even if fewer than half of the keys are lost: workers stop at
        the next user without a token. Restore a dump, or let clients bind again when they start, then <code>carillon
        tokens accept</code>. Evictions from before a worker's start are not seen by it. Then add memory, as
        above.</li>
        </ul>
        <h3 id="disaster-recovery">Disaster recovery</h3>
        <ul>
        <li><b>Means:</b> Redis is lost, or Kafka, or both, and you go on with a backup or a mirror.</li>
        <li><b>Do, Redis alone:</b> restore the newest dump, start Redis, keep <code>redis.url</code>. Workers see the
        older data by themselves (<a href="#carillonredisolderdata">CarillonRedisOlderData</a>) and apply
        <code>im.user-state</code> since then again. Without any dump: <a
        href="#carillontokenloss">CarillonTokenLoss</a>.</li>
        <li><b>Do, Kafka too:</b> another Kafka cluster, with Redis restored before the workers start.</li>
        <li><b>Comes again:</b> digests that were sent after the dump are sent once more. Messages between the dump
        and the loss have no marks: if Kafka's offsets go back that far too, they are pushed again.</li>
        <li><b>Is gone:</b> the statistics between the dump and the loss, traces of that time, badge counts until the
        next report or read, owed claims that were in Redis only. Live Activities that began in that time get no
        updates until the client binds again.</li>
        <li><b>Look:</b> <code>carillon_state_replayed_total</code> rises, then <code>/readyz</code> is 200.
        <code>carillon user</code> of some users shows their present tokens. Compare <code>push.results</code> with
        the backend's messages for the time in question.</li>
        </ul>
        <h3 id="a-certificate-has-expired-at-a-restart">A certificate has expired at a restart</h3>
        <ul>
        <li><b>Means:</b> an app's certificate expired while the worker ran, or the file was never renewed, and now a
        worker starts.</li>
        <li><b>Look:</b> <code>carillon check</code> names app, file and date; <a
        href="#carilloncredentialexpiry">CarillonCredentialExpiry</a> fired before; the log's last lines at the
        start.</li>
        <li><b>Do:</b> put the renewed certificate under the configured path, or give the app a <code>.p8</code> key,
        run <code>carillon check</code>, start again. A worker that runs takes it by a reload, without a restart.</li>
        <li><b>Rule:</b> renew at the first alert, 30 days before. Restart one worker of a group after each renewal,
        so that a fault shows while the others run.</li>
        </ul>
        <h3 id="a-giant-group-floods">A giant group floods</h3>
        <ul>
        <li><b>Means:</b> one conversation with very many members gets many messages. 1:1 messages continue, because
        large groups wait for them (lanes). The group itself gets slow, and Redis is busy.</li>
        <li><b>Look:</b> lag in seconds of <code>carillon.chunks</code>, not of <code>im.events</code>; <code>carillon
        top</code>, row "lanes": <code>bulk</code> against <code>direct</code>; the largest of
        <code>carillon_decisions_total{app,…}</code>. Redis' CPU.</li>
        <li><b>Do:</b> wait, if <code>direct</code> is good: the group drains. If it is too slow: more workers, up to
        32 parts of a group and the partitions of <code>carillon.chunks</code>. If Redis is full: <a
        href="#redis-is-too-small">it is too small</a>, not the workers.</li>
        <li><b>Do, to send less:</b> <code>coalesce.window_s</code> of the app merges a conversation's messages into
        one push. The producer can set <code>push.enabled: false</code> for messages without need of an alert, or
        <code>default_levels</code> can mute groups for users without a setting: a muted member costs a fraction of a
        pushed one.</li>
        <li><b>Do not</b> raise <code>lanes.bulk</code> during it: 1:1 messages would become slower.</li>
        </ul>
        <h3 id="scale-out-and-in">Scale out and in</h3>
        <ul>
        <li><b>Out:</b> start more workers of the same <code>kafka.group</code>, one at a time, the next when
        <code>/readyz</code> is 200. Each start moves partitions once. Work in flight ends first, the next owner
        resumes the rest, nothing is done twice. Shards beyond the partitions of a topic are idle: add partitions
        first (at a quiet time, because keys then move between partitions).</li>
        <li><b>In:</b> <code>SIGTERM</code>, one at a time; a worker drains within <code>drain_s</code> and leaves the
        group by itself. Not while <a href="#carillonlaggrowing">CarillonLagGrowing</a> fires.</li>
        <li><b>Look:</b> <code>carillon_kafka_assigned_partitions</code> by instance, <a
        href="#carillonrebalancestorm">CarillonRebalanceStorm</a>, lag. A shard needs one core and about 250 MB.</li>
        <li><b>Which limit is it?</b> More workers help only if the workers are the limit. If "What limits it" says
        <code>redis</code> or <code>limiter</code>, they do not help.</li>
        </ul>
        <h3 id="read-the-output-of-explain">Read the output of <code>explain</code></h3>
        <p><code>carillon explain --config F --event event.json</code> decides now, with the present data in Redis,
        and sends nothing. For each user and device it prints a head with the verdict (<code>accepted-if-sent</code>,
        <code>suppressed</code>, …) and its reason. Below it are the steps that apply, with their numbers in the
        contract, each with ✓ or ✗, its outcome, and its inputs in brackets. Steps that all devices of a user share
        appear once.</p>
        <ul>
        <li><b>The first ✗ decides.</b> At step 8 a mute level of the user, the group or the app denies the alert, at
        9 a DND window is active, at 12 there is no token for this app. Its reason is in
        <code>docs/reasons.md</code>.</li>
        <li><b><code>→ connection</code>:</b> the device counts as live, so the route is the long connection. If the
        user did not get the message, the gateway's lease or presence is wrong: leases.</li>
        <li><b><code>duplicate</code>:</b> this (app, user, <code>msg_id</code>, kind) has ended already;
        <code>carillon trace</code> shows how. Change <code>msg_id</code> in a copy to see the other steps.</li>
        <li><b><code>dead_letter</code>:</b> the record breaks a rule, with its path and byte.</li>
        <li><b><code>note: unknown field</code>:</b> the field has no effect, and may be misspelt.
        <code>--strict</code> makes it (and a bad record) a failure.</li>
        <li><b><code>accepted-if-sent</code>, and there was no push:</b> the data was different then. <code>--at
        sent</code> uses the clock of that time, but presence and marks are the present ones; <code>carillon
        trace</code> shows the past.</li>
        <li><b>Of a group</b> it prints the first 20 members: <code>--members N</code>.</li>
        </ul>
        <h3 id="a-secret-leaked">A secret leaked</h3>
        <ul>
        <li><b>A provider key (.p8):</b> its holder can push to every token as the app. Make a new key at Apple,
        <b>revoke the old one now</b>, then replace the file (<code>key_id</code> is in the configuration: edit both,
        <code>systemctl reload</code>). Between revocation and the new file pushes are parked, not lost.
        <code>carillon check --probe</code> shows when APNs accepts it. Apple allows two keys at a time: let both
        overlap only without a leak.</li>
        <li><b>A certificate:</b> revoke it at Apple, make another, replace the files; workers use it within
        seconds.</li>
        <li><b>Kafka's or Redis' password:</b> its holder can send any text to any user. Make a second user with the
        same rights (<code>carillon check --acl</code> prints the lines), write its name and password file, restart
        the workers one at a time, then delete the old user. If only Redis' password changed, replace the password
        file: workers read it at each login. Redis: check the connections (<code>CLIENT LIST</code>); Kafka: check the
        brokers' authorizer log.</li>
        <li><b><code>http.token_file</code>:</b> replace the file and restart. The token shows the operator's pages
        only, no tokens and no texts.</li>
        <li><b>Device tokens alone</b> are useless without a credential. If someone bound another user's token: the
        backend writes the right <code>bind</code> with a higher <code>bind_ver</code>.</li>
        <li><b>A recording or dead letters:</b> they contain texts (<code>carillon record</code> scrubs only with
        <code>--scrub</code>). Delete the file, or shorten the topic's retention.</li>
        </ul>
        """#
}
