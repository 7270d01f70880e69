/** Pages of a sign-in, for people. They have no script, so nothing is left to allow. */
export const PAGE_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * Goes on by itself: the session's cookie is Strict, so the redirect of the issuer would not bring it along, a page of our
 * own does.
 */
export function signedInPage(path: string): string {
  const address = escaped(path);
  return page(
    'You are signed in',
    `<p><a href="${address}">Continue</a></p>`,
    `<meta http-equiv="refresh" content="0; url=${address}">`,
  );
}

/** @param again path that begins a sign-in */
export function refusedPage(reason: string, again: string): string {
  return page(
    'You are not signed in',
    `<p>${escaped(reason)}</p><p><a href="${escaped(again)}">Try again</a></p>`,
  );
}

function page(title: string, body: string, head = ''): string {
  return `<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="referrer" content="no-referrer">${head}
    <title>${title}</title>
  </head>
  <body><h1>${title}</h1>${body}</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
