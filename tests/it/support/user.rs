//! Users other than the one who runs the tests. Only root can become them.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// The first of the ids that tests use; no account has them.
const FIRST_UID: u32 = 50_001;

/// A user that no other test uses at the same time, so that listing all servers of a user, or the
/// user's folder in `/tmp`, shows nothing of other tests.
pub(crate) struct User {
    pub(crate) uid: u32,
    /// Reserves the id: the kernel gives this name to one socket at a time, and frees it however
    /// the test ends.
    _reserved: UnixDatagram,
}

impl User {
    pub(crate) fn reserve() -> Self {
        assert!(
            rustix::process::getuid().is_root(),
            "this test needs a second user: run the tests as root"
        );
        let reserve = |uid: &u32| {
            let name = format!("patterm-it-user-{uid}");
            let address = SocketAddr::from_abstract_name(name).unwrap();
            UnixDatagram::bind_addr(&address).ok()
        };
        let free = (FIRST_UID..FIRST_UID + 1_000).find_map(|uid| Some((uid, reserve(&uid)?)));
        let (uid, _reserved) = free.expect("one of a thousand users is free");
        Self { uid, _reserved }
    }

    /// Where this user's servers keep their locks if there is no runtime folder of a session.
    pub(crate) fn folder_in_tmp(&self) -> PathBuf {
        format!("/tmp/patterm-{}", self.uid).into()
    }

    /// Runs `what` on a thread with this user's id and no privileges of root.
    pub(crate) fn does<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.uid));
        let run_as_user = || {
            set_thread_groups(&[]).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            what()
        };
        std::thread::scope(|scope| scope.spawn(run_as_user).join().unwrap())
    }
}
