/// Each rule of contract section 5 as rows; the words are explained in `DecisionRow` and `World`.
enum DecisionTable {
    static let rows = DecisionRow.table(expiryAndRead + veto + mute + force + quietHours + badge) + routing

    static let routing = DecisionRow.table(presence + strategies + tokens + desktop)

    // Step 2 and step 6 (im.md rows 28, 6).
    private static let expiryAndRead = """
        long before its expiry                  | expires=60000     | alert:phone                   |  | allow +1 phone=apns
        one ms before its expiry                | expires=1         | alert:phone                   |  | allow +1 phone=apns
        at its expiry                           | expires=0         | alert:phone                   |  | expired +0
        after its expiry nothing goes anywhere  | expires=-1        | alert:phone phone=fg          |  | expired +0
        expiry comes before every other reason  | expires=-1 off    | mute=5 read.seq=99            |  | expired +0
        read by seq to before it                |                   | read.seq=9 alert:phone        |  | allow +1 phone=apns
        read by seq to it                       |                   | read.seq=10 alert:phone       |  | already_read +1
        read by seq to after it                 |                   | read.seq=11 alert:phone       |  | already_read +1
        no seq, read by seq: cannot compare     | noseq             | read.seq=11 alert:phone       |  | allow +1 phone=apns
        read by time to before it               |                   | read.ms=-1 alert:phone        |  | allow +1 phone=apns
        read by time to it                      |                   | read.ms=0 alert:phone         |  | already_read +1
        no seq, read by time                    | noseq             | read.ms=5 alert:phone         |  | already_read +1
        either mark may cover it                |                   | read.seq=9 read.ms=0          |  | already_read +1
        read: a live device still gets it       |                   | read.seq=10 phone=fg          |  | already_read +0 phone=quiet
        revoked before it was decided           |                   | revoked alert:phone           |  | revoked +1
        revoked: a live device still gets it    |                   | revoked phone=fg              |  | revoked +0 phone=quiet
        read comes before revoked               |                   | revoked read.seq=10           |  | already_read +1
        read beats force                        | force=all         | read.seq=10 alert:phone       |  | already_read +1
        read and not to be counted              | nobadge           | read.seq=10 alert:phone       |  | already_read +0
        read and looked at                      |                   | read.seq=10 pad=fg            |  | already_read +0 pad=quiet
        read and muted                          | group             | read.seq=10 mute=5            |  | already_read +0
        read and held by quiet hours            |                   | read.seq=10 dnd=00:00-23:59   |  | already_read +1
        read, muted, and the window decides     | group @me         | read.seq=10 mute=5 dnd=00:00-23:59,-,1 | chain | already_read +1
        read, muted, and the window holds it    | group             | read.seq=10 mute=5 dnd=00:00-23:59,-,1 | chain | already_read +0
        revoked and muted                       | group             | revoked mute=5                |  | revoked +0
        a revoke is read as any other           | revoke=decrease   | read.seq=10 alert:phone       |  | already_read +0

        """

    // Step 7 (im.md row 3).
    private static let veto = """
        push.enabled false                      | off                   | alert:phone          |            | msg_push_off +0
        the veto beats force                    | off force=me          | alert:phone          |            | msg_push_off +0
        the veto beats force over all switches  | off force=all         | alert:phone          | overrides  | msg_push_off +0
        the veto: a live device still gets it   | off                   | phone=fg alert:phone |            | msg_push_off +0 phone=quiet
        a custom type with content              | customtype            | alert:phone          |            | allow +1 phone=apns
        a custom type without content           | customtype nocontent  | alert:phone          |            | msg_push_off +0
        a custom type with empty content        | customtype emptycontent | alert:phone        |            | msg_push_off +0
        a custom type without content, forced   | customtype nocontent force=me | alert:phone  |            | msg_push_off +0
        an ordinary type without content        | nocontent             | alert:phone          |            | allow +1 phone=apns
        the veto comes before the mute          | off                   | mute=5 alert:phone   |            | msg_push_off +0
        read comes before the veto              | off                   | read.seq=10          |            | already_read +0

        """

    // Step 8 (im.md rows 6 and 7).
    private static let mute = """
        nothing set anywhere                    | group            | alert:phone               |               | allow +1 phone=apns
        level -1 lets all through               | group            | mute=-1 alert:phone       |               | allow +1 phone=apns
        level 0 looks further, finds nothing    | group            | mute=0 alert:phone        |               | allow +1 phone=apns
        level 5 blocks                          | group            | mute=5 alert:phone        |               | conv_muted +0
        level 5 blocks a mention of me          | group @me        | mute=5 alert:phone        |               | conv_muted +0
        level 5 blocks a mention of all         | group @all       | mute=5 alert:phone        |               | conv_muted +0
        level 1, no mention                     | group            | mute=1 alert:phone        |               | conv_muted +0
        level 1, somebody else mentioned        | group @other     | mute=1 alert:phone        |               | conv_muted +0
        level 1, I am mentioned                 | group @me        | mute=1 alert:phone        |               | allow +1 phone=apns
        level 1, all are mentioned              | group @all       | mute=1 alert:phone        |               | allow +1 phone=apns
        level 2, no mention                     | group            | mute=2 alert:phone        |               | conv_muted +0
        level 2, I am mentioned                 | group @me        | mute=2 alert:phone        |               | allow +1 phone=apns
        level 2, all are mentioned              | group @all       | mute=2 alert:phone        |               | conv_muted +0
        level 2, both are mentioned             | group @me @all   | mute=2 alert:phone        |               | allow +1 phone=apns
        level 4, no mention                     | group            | mute=4 alert:phone        |               | conv_muted +0
        level 4, I am mentioned                 | group @me        | mute=4 alert:phone        |               | conv_muted +0
        level 4, all are mentioned              | group @all       | mute=4 alert:phone        |               | allow +1 phone=apns
        level 4, both are mentioned             | group @me @all   | mute=4 alert:phone        |               | allow +1 phone=apns
        p2p level -1                            | p2p              | mute=-1 alert:phone       |               | allow +1 phone=apns
        p2p level 1 is as 5                     | p2p @me          | mute=1 alert:phone        |               | conv_muted +0
        p2p level 2 is as 5                     | p2p @me          | mute=2 alert:phone        |               | conv_muted +0
        p2p level 4 is as 5                     | p2p @all         | mute=4 alert:phone        |               | conv_muted +0
        p2p level 5                             | p2p              | mute=5 alert:phone        |               | conv_muted +0
        ultra level 1, mentioned                | ultra @me        | mute=1 alert:phone        |               | allow +1 phone=apns
        system level 5                          | system           | mute=5 alert:phone        |               | conv_muted +0
        custom level 2, mentioned               | custom @me       | mute=2 alert:phone        |               | allow +1 phone=apns
        a mute that still runs                  | group            | mute=5,until=1 alert:phone |              | conv_muted +0
        a mute that ends this very ms           | group            | mute=5,until=0 alert:phone |              | allow +1 phone=apns
        a mute that ended looks further         | group            | mute=5,until=-1 group=5   |               | conv_muted +0
        an ended -1 looks further too           | group            | mute=-1,until=-1 group=5  |               | conv_muted +0
        the user's -1 wins over the group's 5   | group            | mute=-1 group=5 alert:phone |             | allow +1 phone=apns
        the user's 5 wins over the group's -1   | group            | mute=5 group=-1 alert:phone |             | conv_muted +0
        the user's 0 leaves it to the group     | group            | mute=0 group=5 alert:phone |              | conv_muted +0
        the group's 0 leaves it to the app      | group            | group=0 alert:phone       | level.group=5 | conv_muted +0
        the group's -1 wins over the app's 5    | group            | group=-1 alert:phone      | level.group=5 | allow +1 phone=apns
        a group level means nothing in p2p      | p2p              | group=5 alert:phone       |               | allow +1 phone=apns
        a group level holds in ultra            | ultra            | group=5 alert:phone       |               | conv_muted +0
        the app's level for p2p                 | p2p              | alert:phone               | level.p2p=5   | conv_muted +0
        the app's level for another type        | p2p              | alert:phone               | level.group=5 | allow +1 phone=apns
        the app's level for system              | system           | alert:phone               | level.system=5 | conv_muted +0
        the app's level for custom              | custom           | alert:phone               | level.custom=5 | conv_muted +0
        the app's level 1, mentioned            | ultra @me        | alert:phone               | level.ultra=1 | allow +1 phone=apns
        the user's -1 wins over the app's 5     | p2p              | mute=-1 alert:phone       | level.p2p=5   | allow +1 phone=apns
        muted: a live device still gets it      | group            | mute=5 phone=fg           |               | conv_muted +0 phone=quiet
        muted: background-active gets it too    | group            | mute=5 phone=bg,l,since=9 |               | conv_muted +0 phone=quiet
        muted: a dead device gets nothing       | group            | mute=5 phone=off alert:phone |            | conv_muted +0

        """

    // Force (im.md rows 4, 9).
    private static let force = """
        the list names me: the mute is lifted   | group force=me     | mute=5 alert:phone  |            | forced +1 phone=apns
        the list names others                   | group force=other  | mute=5 alert:phone  |            | conv_muted +0
        an empty list names nobody              | group force=nobody | mute=5 alert:phone  |            | conv_muted +0
        all are named                           | group force=all    | mute=5 alert:phone  |            | forced +1 phone=apns
        forced though not muted                 | group force=me     | alert:phone         |            | forced +1 phone=apns
        force lifts the group's level           | group force=me     | group=5 alert:phone |            | forced +1 phone=apns
        force lifts the app's level             | group force=me     | alert:phone         | level.group=5 | forced +1 phone=apns
        force holds in p2p too                  | p2p force=me       | mute=5 alert:phone  |            | forced +1 phone=apns
        force in a system conversation          | system force=all   | mute=5 alert:phone  |            | forced +1 phone=apns
        not named and not muted                 | group force=other  | alert:phone         |            | allow +1 phone=apns
        DND is above force                      | force=me           | dnd=00:00-23:59 alert:phone |    | dnd +1
        force above DND by the app's switch     | force=me           | dnd=00:00-23:59 alert:phone | overrides | forced +1 phone=apns
        the switch does not help the unnamed    | force=other        | dnd=00:00-23:59 alert:phone | overrides | dnd +1
        forced, muted and in the window         | group force=me     | mute=5 dnd=00:00-23:59 alert:phone | | dnd +1
        forced through mute and window          | group force=me     | mute=5 dnd=00:00-23:59 alert:phone | overrides | forced +1 phone=apns

        """

    // Step 9 (im.md rows 7, 8, 9).
    private static let quietHours = """
        a minute before the window              |            | dnd=22:00-08:00 alert:phone | at=21:59 | allow +1 phone=apns
        the window's first minute               |            | dnd=22:00-08:00 alert:phone | at=22:00 | dnd +1
        before midnight                         |            | dnd=22:00-08:00 alert:phone | at=23:59 | dnd +1
        at midnight                             |            | dnd=22:00-08:00 alert:phone | at=00:00 | dnd +1
        the window's last minute                |            | dnd=22:00-08:00 alert:phone | at=07:59 | dnd +1
        the window's end                        |            | dnd=22:00-08:00 alert:phone | at=08:00 | allow +1 phone=apns
        within one day, before                  |            | dnd=12:00-14:00 alert:phone | at=11:59 | allow +1 phone=apns
        within one day, first minute            |            | dnd=12:00-14:00 alert:phone | at=12:00 | dnd +1
        within one day, last minute             |            | dnd=12:00-14:00 alert:phone | at=13:59 | dnd +1
        within one day, end                     |            | dnd=12:00-14:00 alert:phone | at=14:00 | allow +1 phone=apns
        a window up to midnight                 |            | dnd=22:00-00:00 alert:phone | at=23:59 | dnd +1
        a window up to midnight is over then    |            | dnd=22:00-00:00 alert:phone | at=00:00 | allow +1 phone=apns
        a window from midnight                  |            | dnd=00:00-01:00 alert:phone | at=00:00 | dnd +1
        a window of one minute                  |            | dnd=12:00-12:01 alert:phone | at=12:00 | dnd +1
        a stored window of no length is all day |            | dnd=12:00-12:00 alert:phone | at=03:00 | dnd +1
        switched off                            |            | dndoff=00:00-23:59 alert:phone | at=12:00 | allow +1 phone=apns
        the window's own zone                   |            | dnd=20:00-21:00,Asia/Shanghai alert:phone | at=12:30 | dnd +1
        the window's zone wins over the token's |            | dnd=20:00-21:00,Asia/Shanghai alert:phone@UTC | at=12:30 | dnd +1
        the token's zone                        |            | dnd=07:00-08:00 alert:phone@America/New_York | at=12:30 | dnd +1
        the token's zone wins over the app's    |            | dnd=12:00-13:00 alert:phone@America/New_York | at=12:30 | allow +1 phone=apns
        the zone of the token bound last        |            | dnd=20:00-21:00 alert:pad@UTC#1 alert:phone@Asia/Shanghai#2 | at=12:30 | dnd +1
        the app's zone                          |            | dnd=20:00-21:00 alert:phone | at=12:30 zone=Asia/Shanghai | dnd +1
        an unknown zone is passed over          |            | dnd=20:00-21:00,No/Where alert:phone@Asia/Shanghai | at=12:30 | dnd +1
        unknown everywhere: UTC                 |            | dnd=12:00-13:00,No/Where alert:phone | at=12:30 zone=No/Where | dnd +1
        a zone with odd minutes                 |            | dnd=18:15-18:16,Asia/Kathmandu alert:phone | at=12:30 | dnd +1
        a zone a day ahead                      |            | dnd=02:30-02:31,Pacific/Kiritimati alert:phone | at=12:30 | dnd +1
        DND level 5, mentioned                      | group @me  | dnd=00:00-23:59,-,5 alert:phone |  | dnd +1
        DND level 1, mentioned in a group           | group @me  | dnd=00:00-23:59,-,1 alert:phone |  | allow +1 phone=apns
        DND level 1, all mentioned in a group       | group @all | dnd=00:00-23:59,-,1 alert:phone |  | allow +1 phone=apns
        DND level 1, mentioned in an ultra group    | ultra @me  | dnd=00:00-23:59,-,1 alert:phone |  | allow +1 phone=apns
        DND level 1, not mentioned                  | group      | dnd=00:00-23:59,-,1 alert:phone |  | dnd +1
        DND level 1, somebody else mentioned        | group @other | dnd=00:00-23:59,-,1 alert:phone |  | dnd +1
        DND level 1, mentioned, but not in a group  | p2p @me    | dnd=00:00-23:59,-,1 alert:phone |  | dnd +1
        both veto: the mute is named first      | group      | mute=5 dnd=00:00-23:59 alert:phone |  | conv_muted +0
        a mention through DND, not through mute | group @me  | mute=5 dnd=00:00-23:59,-,1 alert:phone |  | conv_muted +0
        chain: through DND and the mute         | group @me  | mute=5 dnd=00:00-23:59,-,1 alert:phone | chain | allow +1 phone=apns
        chain: the window decides alone         | group      | mute=5 dnd=00:00-23:59,-,1 alert:phone | chain | dnd +0
        chain: held, unmuted, still counts      | group      | dnd=00:00-23:59,-,1 alert:phone | chain | dnd +1
        chain: level 5 holds a mention          | group @me  | mute=1 dnd=00:00-23:59,-,5 alert:phone | chain | dnd +1
        chain: outside the window the mute says | group @me  | mute=5 dnd=22:00-23:00,-,1 alert:phone | chain | conv_muted +0
        chain: the switch lets the forced by    | group force=me | mute=5 dnd=00:00-23:59 alert:phone | chain overrides | forced +1 phone=apns
        chain: without the switch it holds      | group force=me | mute=5 dnd=00:00-23:59 alert:phone | chain | dnd +1
        held: a live device still gets it       |            | dnd=00:00-23:59 phone=fg alert:phone |  | dnd +0 phone=quiet

        """

    // Step 10 (im.md B3, B4, B9).
    private static let badge = """
        counted                                 |                       | alert:phone                |  | allow +1 phone=apns
        the sender does not want it counted     | nobadge               | alert:phone                |  | allow +0 phone=apns
        not counted under DND either            | nobadge               | dnd=00:00-23:59            |  | dnd +0
        forced, but not to be counted           | nobadge force=me      | alert:phone                |  | forced +0 phone=apns
        a phone is looked at                    |                       | phone=fg alert:phone       |  | allow +0 phone=alert/8000
        a tablet is looked at                   |                       | pad=fg alert:phone         |  | allow +0 phone=apns pad=alert/8000
        an Android phone is looked at           |                       | droid=fg alert:phone       |  | allow +0 phone=apns droid=alert/8000
        a desktop is looked at                  |                       | pc=fg alert:phone          |  | allow +1 phone=apns pc=alert/8000
        a web client is looked at               |                       | web=fg alert:phone         |  | allow +1 phone=apns web=alert/8000
        background-active is not foreground     |                       | phone=bg,l,since=5         |  | allow +1 phone=alert/4000
        a suspect connection is not foreground  |                       | phone=fg,suspect alert:phone |  | allow +1 phone=apns
        looked at while DND holds               |                       | phone=fg dnd=00:00-23:59   |  | dnd +0 phone=quiet
        a revoke that decreases counts nothing  | revoke=decrease       | alert:phone                |  | allow +0 phone=apns
        a revoke that keeps counts nothing      | revoke=keep           | alert:phone                |  | allow +0 phone=apns
        a revoke that counts                    | revoke=count          | alert:phone                |  | allow +1 phone=apns
        a revoke that counts: badge false is naught | revoke=count nobadge | alert:phone             |  | allow +1 phone=apns
        a revoke that counts, muted             | group revoke=count    | mute=5 alert:phone         |  | conv_muted +0
        a silent push counts like any other     | silent                | alert:phone                |  | allow +1 phone=apns
        nobody reached, still unread            |                       |                            |  | allow +1 no_token

        """

    // Step 11: presence by the clock (im.md rows 1 and 2).
    private static let presence = """
        no presence                             |  | alert:phone                          |  | allow +1 phone=apns
        foreground                              |  | phone=fg alert:phone                 |  | allow +0 phone=alert/8000
        off                                     |  | phone=off alert:phone                |  | allow +1 phone=apns
        just left, raises local alerts          |  | phone=bg,l,since=0 alert:phone       |  | allow +1 phone=alert/4000
        119 s ago                               |  | phone=bg,l,since=119 alert:phone     |  | allow +1 phone=alert/4000
        120 s ago                               |  | phone=bg,l,since=120 alert:phone     |  | allow +1 phone=apns
        left, cannot raise local alerts         |  | phone=bg,since=5 alert:phone         |  | allow +1 phone=apns
        left, nobody knows when                 |  | phone=bg,l alert:phone               |  | allow +1 phone=apns
        no ack came by this connection          |  | phone=fg,suspect alert:phone         |  | allow +1 phone=apns
        suspect while background-active         |  | phone=bg,l,since=5,suspect alert:phone |  | allow +1 phone=apns
        the conversation is open                |  | phone=fg,open alert:phone            |  | allow +0 phone=quiet
        another conversation is open            |  | phone=fg,elsewhere alert:phone       |  | allow +0 phone=alert/8000
        live without a token                    |  | phone=fg                             |  | allow +0 phone=alert/8000
        one live, one not: each its own way     |  | phone=fg alert:phone alert:pad       |  | allow +0 phone=alert/8000 pad=apns
        two live                                |  | phone=fg pad=fg                      |  | allow +0 phone=alert/8000 pad=alert/8000
        a dead connection without a token       |  | phone=off                            |  | allow +1 no_token
        a silent message raises no alert        | silent | phone=fg                         |  | allow +0 phone=quiet

        """

    // Step 11: strategies (im.md row 1, Getui).
    private static let strategies = """
        1: connection where it lives            | strategy=1 | phone=fg alert:phone alert:pad |             | allow +0 phone=alert/8000 pad=apns
        2: APNs though it lives                 | strategy=2 | phone=fg alert:phone           |             | allow +0 phone=apns
        2: live without a token                 | strategy=2 | phone=fg                       |             | allow +0 no_token
        2: nothing by connection, denied too    | strategy=2 off | phone=fg alert:phone       |             | msg_push_off +0
        3: connection                           | strategy=3 | phone=fg alert:phone           |             | allow +0 phone=alert/8000
        3: never APNs                           | strategy=3 | phone=off alert:phone          |             | allow +1 phone=connection_only
        3: one lives, the rest does not         | strategy=3 | phone=fg alert:phone alert:pad |             | allow +0 phone=alert/8000 pad=connection_only
        3: no ack, and still no APNs            | strategy=3 | phone=fg,suspect alert:phone   |             | allow +1 phone=connection_only
        3: nobody there                         | strategy=3 |                                |             | allow +1 no_token
        4: APNs first, then a copy              | strategy=4 | phone=fg alert:phone           |             | allow +0 phone=apns+copy
        4: no copy where nothing lives          | strategy=4 | phone=off alert:phone          |             | allow +1 phone=apns
        4: live without a token                 | strategy=4 | phone=fg                       |             | allow +0 phone=alert/8000
        4: denied, a live device gets it        | strategy=4 off | phone=fg alert:phone       |             | msg_push_off +0 phone=quiet
        the app's strategy                      |            | phone=fg alert:phone           | strategy=4  | allow +0 phone=apns+copy
        the message's wins over the app's       | strategy=1 | phone=fg alert:phone           | strategy=2  | allow +0 phone=alert/8000

        """

    // Steps 11 and 12: tokens (im.md rows 26, 27).
    private static let tokens = """
        no token at all                         |      |                                  |  | allow +1 no_token
        an ordinary push: not to a voip token   |      | voip:phone                       |  | allow +1 no_token
        an ordinary push: not to an activity's  |      | activity:phone                   |  | allow +1 no_token
        an ordinary push: not to a start token  |      | start:phone                      |  | allow +1 no_token
        an ordinary push picks the alert token  |      | voip:phone alert:phone           |  | allow +1 phone=apns
        a call: to the voip token               | voip | voip:phone alert:phone           |  | allow +1 phone=apns
        a call: never to an alert token         | voip | alert:phone                      |  | allow +1 no_token
        a call: by connection where it lives    | voip | phone=fg voip:phone              |  | allow +0 phone=alert/8000
        two devices                             |      | alert:phone alert:pad            |  | allow +1 phone=apns pad=apns
        two tokens of one device: one alert     |      | alert:phone#1 alert:phone#2      |  | allow +1 phone=apns
        denied comes before no token            | off  |                                  |  | msg_push_off +0

        """

    // Step 11: the desktop policy (im.md row 10).
    private static let desktop = """
        a live desktop, pushed all the same     |            | pc=fg alert:phone                         |  | allow +1 phone=apns pc=alert/8000
        not wanted: the phone waits             |            | nodesktop pc=fg alert:phone               |  | allow +1 phone=wait pc=alert/8000
        not wanted, on a mac                    |            | nodesktop mac=fg alert:phone              |  | allow +1 phone=wait mac=alert/8000
        not wanted, in a browser                |            | nodesktop web=fg alert:phone              |  | allow +1 phone=wait web=alert/8000
        a hold of 30 s                          |            | nodesktop hold=30 pc=fg alert:phone       |  | allow +1 phone=hold/30000 pc=alert/8000
        no desktop lives                        |            | nodesktop pc=off alert:phone              |  | allow +1 phone=apns
        the desktop gave no ack                 |            | nodesktop pc=fg,suspect alert:phone       |  | allow +1 phone=apns
        a live phone is no desktop              |            | nodesktop pad=fg alert:phone              |  | allow +0 phone=apns pad=alert/8000
        all phones wait                         |            | nodesktop pc=fg alert:phone alert:pad     |  | allow +1 phone=wait pad=wait pc=alert/8000
        a live phone gets it by connection      |            | nodesktop pc=fg phone=fg alert:phone      |  | allow +0 phone=alert/8000 pc=alert/8000
        another desktop's token does not wait   |            | nodesktop pc=fg mac=off alert:mac         |  | allow +1 mac=apns pc=alert/8000
        force does not lift it                  | force=me   | nodesktop pc=fg alert:phone               |  | forced +1 phone=wait pc=alert/8000
        open on the desktop: no ack to wait for |            | nodesktop pc=fg,open alert:phone          |  | allow +1 phone=desktop_online pc=quiet
        open there, but with a hold             |            | nodesktop hold=5 pc=fg,open alert:phone   |  | allow +1 phone=hold/5000 pc=quiet
        a mute comes first                      | group      | nodesktop mute=5 pc=fg alert:phone        |  | conv_muted +0 pc=quiet
        strategy 2: no ack to wait for          | strategy=2 | nodesktop pc=fg alert:phone               |  | allow +1 phone=desktop_online
        strategy 2 with a hold                  | strategy=2 | nodesktop hold=5 pc=fg alert:phone        |  | allow +1 phone=hold/5000
        strategy 3 knows no phone               | strategy=3 | nodesktop pc=fg alert:phone               |  | allow +1 phone=connection_only pc=alert/8000
        strategy 4: the phone waits             | strategy=4 | nodesktop pc=fg alert:phone               |  | allow +1 phone=wait pc=alert/8000
        strategy 4: a live phone, at once       | strategy=4 | nodesktop pc=fg phone=fg alert:phone      |  | allow +0 phone=alert/8000 pc=alert/8000
        """
}
