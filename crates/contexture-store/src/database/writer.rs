//! The one thread that writes to a file: what is begun at the same time is committed together.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What the thread of a [`Writer`] does with its jobs. It is called on that thread only, in the order of the jobs.
pub trait Commits: Send + 'static {
    /// Something to write.
    type Job: Send + 'static;
    /// What became of a job in a transaction that was committed.
    type Outcome;
    /// Why a transaction failed.
    type Error;

    /// Most jobs of one transaction.
    const MOST_TOGETHER: usize;

    /// Whether a job is done by itself.
    fn is_alone(job: &Self::Job) -> bool;

    /// Writes jobs in one transaction. An error means that nothing of any of them was written. Each is then tried alone,
    /// so that one that cannot be written does not affect the others.
    ///
    /// # Errors
    /// The transaction failed.
    fn transact(&mut self, jobs: &[Self::Job]) -> Result<Vec<Self::Outcome>, Self::Error>;

    /// If an error concerns all jobs of a transaction, what makes the error of the others: they are not tried alone.
    fn of_all(_error: &Self::Error) -> Option<fn() -> Self::Error> {
        None
    }

    /// Tells what became of a job, once it is on the disk or has failed.
    fn tell(&mut self, job: Self::Job, outcome: Result<Self::Outcome, Self::Error>);

    /// Does a job that is done by itself.
    fn do_alone(&mut self, job: Self::Job);

    /// Is called after each transaction and after each job that was done by itself, before the thread waits.
    fn tidy(&mut self) {}
}

/// A job in the queue, with its place if it waited for one.
type Queued<Job> = (Job, Option<OwnedSemaphorePermit>);

/// The thread, and the queue in front of it. Dropping it finishes what is in the queue and ends the thread.
pub struct Writer<Job> {
    /// `None` only while dropping: closing the queue is what ends the thread.
    queue: Option<UnboundedSender<Queued<Job>>>,
    room: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

/// A way to the queue of a [`Writer`] that does not keep its thread.
pub struct WeakWriter<Job> {
    queue: WeakUnboundedSender<Queued<Job>>,
    room: Arc<Semaphore>,
}

impl<Job: Send + 'static> Writer<Job> {
    /// Starts the thread. At most `room` jobs that [`enter`](Self::enter) are in the queue at a time.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(name: &str, room: usize, mut work: impl Commits<Job = Job>) -> io::Result<Self> {
        let (queue, mut jobs) = unbounded_channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&mut work, &mut jobs))?;
        Ok(Self { queue: Some(queue), room: Arc::new(Semaphore::new(room)), thread: Some(thread) })
    }

    /// Begins a job, after everything that was begun before. If the thread has ended, the job is dropped.
    pub fn begin(&self, job: Job) {
        if let Some(queue) = &self.queue {
            // Who waits for the job learns that it was dropped.
            let _ = queue.send((job, None));
        }
    }

    /// Begins a job once there is room for it. If the thread has ended, the job is dropped.
    pub async fn enter(&self, job: Job) {
        let place = self.room.clone().acquire_owned().await.ok();
        if let Some(queue) = &self.queue {
            // Who waits for the job learns that it was dropped.
            let _ = queue.send((job, place));
        }
    }

    /// A way to the queue that does not keep the thread.
    pub fn downgrade(&self) -> WeakWriter<Job> {
        let queue = self.queue.as_ref().expect("only dropping takes it");
        WeakWriter { queue: queue.downgrade(), room: self.room.clone() }
    }
}

impl<Job> WeakWriter<Job> {
    /// Begins a job, unless there is no room for it or the writer is gone.
    pub fn try_enter(&self, job: Job) {
        if let (Some(queue), Ok(place)) = (self.queue.upgrade(), self.room.clone().try_acquire_owned()) {
            // An error means that the thread has ended.
            let _ = queue.send((job, Some(place)));
        }
    }
}

impl<Job> fmt::Debug for Writer<Job> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl<Job> Drop for Writer<Job> {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic was printed on standard error; there is nothing to do here.
            let _ = thread.join();
        }
    }
}

/// Processes the queue until it is closed.
fn run<W: Commits>(work: &mut W, jobs: &mut UnboundedReceiver<Queued<W::Job>>) {
    while let Some((first, _)) = jobs.blocking_recv() {
        let (mut together, mut alone) = (Vec::new(), None);
        let mut next = Some(first);
        while let Some(job) = next.take() {
            if W::is_alone(&job) {
                alone = Some(job);
                break;
            }
            together.push(job);
            if together.len() < W::MOST_TOGETHER {
                next = jobs.try_recv().ok().map(|(job, _)| job);
            }
        }
        commit(work, together);
        if let Some(job) = alone {
            work.do_alone(job);
        }
        work.tidy();
    }
}

/// Writes jobs in one transaction, or each by itself if that fails, and tells what became of them.
pub(crate) fn commit<W: Commits>(work: &mut W, jobs: Vec<W::Job>) {
    if jobs.is_empty() {
        return;
    }
    let error = match work.transact(&jobs) {
        Ok(outcomes) => {
            jobs.into_iter().zip(outcomes).for_each(|(job, outcome)| work.tell(job, Ok(outcome)));
            return;
        }
        Err(error) => error,
    };
    let of_all = W::of_all(&error);
    if of_all.is_none() && jobs.len() > 1 {
        jobs.into_iter().for_each(|job| commit(work, vec![job]));
        return;
    }
    let mut error = Some(error);
    for job in jobs {
        if let Some(error) = error.take().or_else(|| of_all.map(|make| make())) {
            work.tell(job, Err(error));
        }
    }
}
