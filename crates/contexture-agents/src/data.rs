//! How the structures of the files are written: each field once, with its documentation, and a function that returns it.

use serde::{Deserialize, Deserializer};

/// A text of a file, which is kept for as long as the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub(crate) &'static str);

impl Text {
    /// The text.
    pub fn text(self) -> &'static str {
        self.0
    }
}

/// A list of such texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Texts(pub(crate) &'static [&'static str]);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?.leak()))
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<Text>::deserialize(deserializer)?;
        Ok(Self(texts.into_iter().map(|text| text.0).collect::<Vec<_>>().leak()))
    }
}

/// Structures that are read from files: `Name { what a file must say } and { what it may say }`.
macro_rules! data {
    (@get [$($doc:literal)*] $field:ident bool) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> bool { self.$field }
    };
    (@get [$($doc:literal)*] $field:ident Text) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> &'static str { self.$field.0 }
    };
    (@get [$($doc:literal)*] $field:ident Texts) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> &'static [&'static str] { self.$field.0 }
    };
    (@get [$($doc:literal)*] $field:ident Option<Text>) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> Option<&'static str> { self.$field.map(|text| text.0) }
    };
    (@get [$($doc:literal)*] $field:ident Option<Texts>) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> Option<&'static [&'static str]> { self.$field.map(|texts| texts.0) }
    };
    (@get [$($doc:literal)*] $field:ident Option<$of:ident>) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> Option<&$of> { self.$field.as_ref() }
    };
    (@get [$($doc:literal)*] $field:ident Vec<$of:ident>) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> &[$of] { &self.$field }
    };
    (@get [$($doc:literal)*] $field:ident $kind:ident $(<$($of:ident),+>)?) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> &$kind $(<$($of),+>)? { &self.$field }
    };
    ($(
        $(#[doc = $about:literal])*
        $(#[derive($derived:ident)])?
        $name:ident {
            $($(#[doc = $must_doc:literal])* $must:ident: $must_kind:ident $(<$($must_of:ident),+>)?,)*
        } and {
            $(
                $(#[doc = $may_doc:literal])*
                $(#[serde(rename = $renamed:literal)])?
                $may:ident: $may_kind:ident $(<$($may_of:ident),+>)?,
            )*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, $($derived,)? serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($must: $must_kind $(<$($must_of),+>)?,)*
            $($(#[serde(rename = $renamed)])? #[serde(default)] $may: $may_kind $(<$($may_of),+>)?,)*
        }

        impl $name {
            $(data!{@get [$($must_doc)*] $must $must_kind $(<$($must_of),+>)?})*
            $(data!{@get [$($may_doc)*] $may $may_kind $(<$($may_of),+>)?})*
        }
    )*};
}

pub(crate) use data;
