//! Work in the threads of libuv, and failures as errors.

use contexture_in_process::Failure;
use napi::bindgen_prelude::{AsyncTask, ToNapiValue, TypeName};
use napi::{Env, Error, Status, Task};

/// Something to do in another thread.
pub struct Work<T> {
    /// `None` once it was begun.
    work: Option<Box<dyn FnOnce() -> Result<T, Failure> + Send>>,
}

impl<T: Send + ToNapiValue + TypeName + 'static> Task for Work<T> {
    type Output = T;
    type JsValue = T;

    fn compute(&mut self) -> napi::Result<T> {
        let work = self.work.take().ok_or_else(|| Error::from_reason("work is done once"))?;
        work().map_err(|failure| thrown(&failure))
    }

    fn resolve(&mut self, _: Env, output: T) -> napi::Result<T> {
        Ok(output)
    }
}

/// A promise of what is done in another thread.
pub(crate) fn promised<T>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> AsyncTask<Work<T>>
where
    T: Send + ToNapiValue + TypeName + 'static,
{
    AsyncTask::new(Work { work: Some(Box::new(work)) })
}

/// The error for a failure.
pub(crate) fn thrown(failure: &Failure) -> Error {
    Error::new(Status::GenericFailure, failure.to_json())
}

/// A count as a number of JavaScript.
pub(crate) fn number(count: impl TryInto<u32>) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}
