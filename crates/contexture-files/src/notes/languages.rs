//! Words with which people say in other languages than English that they changed something.

/// Words for what was done, in lower case: German, French, Spanish.
const DEEDS: &[&str] = &[
    "abgeändert",
    "aktualisiert",
    "angepasst",
    "ausgecheckt",
    "bearbeitet",
    "eingefügt",
    "entfernt",
    "ergänzt",
    "ersetzt",
    "formatiert",
    "geändert",
    "gelöscht",
    "gemergt",
    "gepullt",
    "hinzugefügt",
    "korrigiert",
    "repariert",
    "überschrieben",
    "umbenannt",
    "umgestellt",
    "verschoben",
    "zurückgesetzt",
    "ajouté",
    "annulé",
    "corrigé",
    "fusionné",
    "modifié",
    "remplacé",
    "renommé",
    "supprimé",
    "actualizado",
    "añadido",
    "arreglado",
    "borrado",
    "cambiado",
    "corregido",
    "editado",
    "eliminado",
    "modificado",
    "reemplazado",
    "renombrado",
    "revertido",
];

/// Words that say that it is asked, wished or denied, or that the agent did it.
const OTHERS: &[&str] = &[
    "bitte", "du", "hast", "kein", "keine", "kann", "kannst", "muss", "müssen", "nicht", "noch", "soll", "sollen",
    "sollte", "warum", "was", "wenn", "werden", "wer", "wie", "wird", "wurden", "as", "doit", "faut", "jamais", "ne",
    "pas", "pourquoi", "quand", "que", "qui", "si", "tu", "vous", "cuando", "debe", "has", "hay", "nada", "no",
    "nunca", "quién", "qué",
];

/// Whether words say that somebody changed something who is not the agent.
pub(super) fn tell_of_deed(words: &[&str]) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    has(DEEDS) && !has(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_tell_of_what_they_did_in_their_own_language() {
        let tells = |text: &str| tell_of_deed(&text.split(' ').collect::<Vec<_>>());
        for text in ["hab a txt angepasst", "a txt wurde von mir geändert", "he modificado a txt", "j'ai corrigé a txt"]
        {
            assert!(tells(text), "{text}");
        }
        for text in ["du hast a txt geändert", "a txt muss geändert sein", "wer hat das gelöscht", "ne modifié pas"]
        {
            assert!(!tells(text), "{text}");
        }
    }
}
