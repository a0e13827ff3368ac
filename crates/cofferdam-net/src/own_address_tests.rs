use super::*;

fn own(text: &str) -> bool {
    is_own(text.parse().unwrap()).unwrap()
}

#[test]
fn the_loopback_is_this_machine_and_the_internet_is_not() {
    assert!(own("127.0.0.1") && own("127.8.9.10"));
    // With a route to it or without one.
    assert!(!own("93.184.216.34"));
}

#[test]
fn what_is_no_answer_is_an_error_and_never_a_no() {
    let message = |kind: u16, body: &[u8]| [&[0; 4][..], &kind.to_ne_bytes(), &[0; 10], body].concat();
    let error = |number: Errno| message(NLMSG_ERROR, &(-number.raw_os_error()).to_ne_bytes());
    assert!(!read(&error(Errno::NETUNREACH)).unwrap());
    for answer in [
        vec![],
        vec![0; HEADER - 1],
        vec![0; HEADER],
        message(RTM_NEWROUTE, &[0; ROUTE_KIND]),
        message(NLMSG_ERROR, &[]),
        message(NLMSG_ERROR, &i32::MIN.to_ne_bytes()),
        error(Errno::INVAL),
        error(Errno::OPNOTSUPP),
    ] {
        assert!(read(&answer).is_err(), "{answer:?}");
    }
}
