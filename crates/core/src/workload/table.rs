//! The tables of workload files: a struct with the defaults of its fields, and its form in files, from one list of fields.

use super::list::List;
use super::quantity::{Bytes, Count, Number, Seconds, Size};
use super::threads::Threads;
use super::{Arriving, DataType, Durability, FaultKind, Target, Transaction, Until, WhenLate};
use crate::generator::{Distribution, Encoding, ParetoShape, Rate, SizeSpec};

/// The form in a file of a value of type `T`.
pub(super) trait FileForm<T>: Sized {
    /// The form of a value; `None` if the value is none.
    fn of(value: &T) -> Option<Self>;
    /// The value of a form.
    fn value(self) -> T;
}

macro_rules! file_form {
    ($($wrapper:ident $(<$inner:ty>)? => $type:ty),*; $($same:ty),*) => {
        $(impl FileForm<$type> for $wrapper $(<$inner>)? {
            fn of(value: &$type) -> Option<Self> {
                Some($wrapper(value.clone()))
            }
            fn value(self) -> $type {
                self.0
            }
        })*
        $(impl FileForm<$same> for $same {
            fn of(value: &$same) -> Option<Self> {
                Some(value.clone())
            }
            fn value(self) -> $same {
                self
            }
        })*
    };
}

file_form!(Bytes => u64, Count<u32> => u32, Count<u64> => u64, Threads => u32, Seconds => f64, Number => f64, Size => SizeSpec;
    bool, String, Encoding, Distribution, Durability, DataType, Transaction, FaultKind, Target, Rate, ParetoShape, Arriving,
    WhenLate, Until);

impl<T: Clone> FileForm<Vec<T>> for List<T> {
    fn of(value: &Vec<T>) -> Option<Self> {
        Some(List(value.clone()))
    }
    fn value(self) -> Vec<T> {
        self.0
    }
}

impl<T, Form: FileForm<T>> FileForm<Option<T>> for Form {
    fn of(value: &Option<T>) -> Option<Self> {
        value.as_ref().and_then(<Form as FileForm<T>>::of)
    }
    fn value(self) -> Option<T> {
        Some(<Form as FileForm<T>>::value(self))
    }
}

/// A table of a file is the form of a struct with the same field names. Missing fields have their defaults, and fields with
/// their default are not written.
macro_rules! table_form {
    ($file:ident => $type:ident { $($field:ident),* }) => {
        impl $file {
            pub(super) fn over(self, mut value: $type) -> $type {
                $(if let Some(written) = self.$field {
                    value.$field = crate::workload::table::FileForm::value(written);
                })*
                value
            }
        }

        impl crate::workload::table::FileForm<$type> for $file {
            fn of(value: &$type) -> Option<Self> {
                let usual = $type::default();
                let form = $file {
                    $($field: if value.$field == usual.$field {
                        None
                    } else {
                        crate::workload::table::FileForm::of(&value.$field)
                    },)*
                };
                Some(form)
            }

            fn value(self) -> $type {
                self.over($type::default())
            }
        }
    };
}
pub(super) use table_form;

/// Defines a struct and the table of files that is its form. A field has a type, a form in files and a default; the
/// description, which is in the schemas of files and of records, ends with the default in words.
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $(#[derive($($trait:ident),+)])?
        $type:ident, $file:ident as $name:literal, $expected:literal {
            $($(#[doc = $text:literal])+ $(#[serde($rule:ident = $skip:literal)])?
            $field:ident: $kind:ty, $form:ty = $usual:expr;)+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $(#[derive($($trait),+)])?
        #[serde(deny_unknown_fields, default)]
        pub struct $type {
            $($(#[doc = $text])+ $(#[serde($rule = $skip)])? pub $field: $kind,)+
        }

        impl Default for $type {
            fn default() -> Self {
                $type { $($field: $usual,)+ }
            }
        }

        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default, expecting = $expected)]
        #[schemars(rename = $name)]
        pub(super) struct $file {
            $($(#[doc = $text])+ pub(super) $field: Option<$form>,)+
        }

        crate::workload::table::table_form!($file => $type { $($field),+ });

        #[cfg(test)]
        impl crate::workload::properties::Any for $type {
            fn any() -> proptest::strategy::BoxedStrategy<$type> {
                use proptest::strategy::{Just, Strategy};
                let any = Just($type::default()).boxed();
                $(let any = (any, <$kind as crate::workload::properties::Any>::any());
                let any = any.prop_map(|(value, $field)| $type { $field, ..value }).boxed();)+
                any
            }
        }
    };
}
pub(super) use table;
