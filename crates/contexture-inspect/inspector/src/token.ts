// The token of the inspector. It comes behind the # of the address, which browsers send to nobody.

/** Where a tab keeps it, so that the page can be loaded again. Other tabs, ports and sites do not see it. */
const place = "contexture-token";

const given = /^#token=([\w-]+)$/;

/** Takes the token out of the address, so that it is in no history. Returns whether there was one. */
export function takeToken(): boolean {
  const found = given.exec(location.hash);
  if (!found) return false;
  sessionStorage.setItem(place, found[1]!);
  history.replaceState(null, "", location.pathname + "#/");
  return true;
}

export function token(): string {
  return sessionStorage.getItem(place) ?? "";
}
