//! Which attributes have one value at a time.

use super::fact::normal;

/// Attributes with one value at a time, normalised.
const SINGLE: &[&str] = &[
    "name",
    "full name",
    "first name",
    "last name",
    "nickname",
    "pronouns",
    "age",
    "birthday",
    "date of birth",
    "gender",
    "email",
    "email address",
    "phone",
    "phone number",
    "address",
    "home",
    "home address",
    "city",
    "country",
    "lives in",
    "location",
    "time zone",
    "timezone",
    "language",
    "native language",
    "preferred language",
    "nationality",
    "employer",
    "company",
    "works at",
    "works for",
    "job",
    "job title",
    "title",
    "role",
    "profession",
    "occupation",
    "manager",
    "boss",
    "team",
    "salary",
    "marital status",
    "partner",
    "spouse",
    "husband",
    "wife",
    "owner",
    "maintainer",
    "status",
    "state",
    "phase",
    "version",
    "current version",
    "deadline",
    "due date",
    "release date",
    "start date",
    "end date",
    "date",
    "license",
    "default branch",
    "main branch",
    "port",
    "url",
    "path",
    "repository",
    "package manager",
    "build command",
    "test command",
    "editor",
    "operating system",
    "os",
    "shell",
    "price",
    "budget",
    "size",
    "count",
    "favorite",
    "favourite",
    "favorite color",
    "favourite colour",
    "姓名",
    "名字",
    "年龄",
    "生日",
    "城市",
    "住在",
    "职业",
    "公司",
    "邮箱",
    "电话",
    "时区",
    "状态",
    "版本",
];

/// Whether an attribute has one value at a time.
pub(super) fn is_single(attribute: &str) -> bool {
    let attribute = normal(attribute);
    SINGLE.contains(&attribute.as_str()) || attribute.starts_with("favorite ") || attribute.starts_with("favourite ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_known_however_they_are_written() {
        for attribute in ["lives in", "Lives_In", "lives-in", "favourite tea", "Email address", "版本"] {
            assert!(is_single(attribute), "{attribute}");
        }
        for attribute in ["likes", "has child", "", "names of pets"] {
            assert!(!is_single(attribute), "{attribute}");
        }
    }
}
