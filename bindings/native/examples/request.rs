//! How long a folder takes for a request, without a language around it: `request BODY.json CALLS`. It prints the least and
//! the median of the calls, in microseconds.

use std::time::Instant;

use contexture_in_process::Folder;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, calls] = &arguments[..] else { panic!("request BODY.json CALLS") };
    let body = std::fs::read(path).expect("the body can be read");
    let folder = Folder::new(r#"{"budget":64000}"#, None).expect("the options are right");
    let timed = |_| {
        let began = Instant::now();
        folder.request(&body).expect("it is a request");
        began.elapsed().as_micros()
    };
    let mut times: Vec<u128> = (0..calls.parse().expect("a number of calls")).map(timed).collect();
    times.sort_unstable();
    println!("rust bytes {} {}", times[0], times[times.len() / 2]);
}
