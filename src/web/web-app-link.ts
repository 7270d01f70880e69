import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';

/** Browsers never send fragments to a server. */
const FRAGMENT = 'code=';
/** The service in the application's own list of backends. */
const BACKEND = { id: 'slipway', name: 'Slipway', kind: 'cloud', authMode: 'api-key' };

// Takes the code out of the address and exchanges it for a key, which goes where the application keeps typed keys.
// The user is asked before another stored key is replaced: the link may be from a stranger. The request is
// synchronous, so that no script of the application runs earlier. Telemetry is off. Agent servers are reached through
// `POST /api/cloud-proxy`.
export const ARRIVAL_SCRIPT = `(function () {
  window.__AGENT_CANVAS_DO_NOT_TRACK__ = true;
  Object.defineProperty(window, '__AGENT_CANVAS_SESSION_API_KEY__', { get: function () {
    var mine = backends().find(function (one) {
      return one.kind === 'cloud' && String(one.host).replace(/[/]+$/, '') === location.origin;
    });
    return mine && mine.apiKey;
  } });
  if (location.hash.indexOf('#${FRAGMENT}') !== 0) return;
  var code = location.hash.slice(${FRAGMENT.length + 1});
  history.replaceState(null, '', location.pathname + location.search);
  var stored = backends();
  var request = new XMLHttpRequest();
  request.open('POST', '/auth/code/key', false);
  request.setRequestHeader('Content-Type', 'application/json');
  request.send(JSON.stringify({ code: code }));
  if (request.status !== 200) {
    if (stored.length === 0) window.alert('This link has been used, or is too old. Enter a key, or start the service again for another link.');
    return;
  }
  var account = JSON.parse(request.responseText);
  var mine = Object.assign(${JSON.stringify(BACKEND)}, { host: location.origin, apiKey: account.api_key });
  var isOther = stored.some(function (one) { return one.apiKey && one.apiKey !== mine.apiKey; });
  var question = 'This browser holds another key. Connect it to the account ' + account.user.email + ' (' + account.user.id +
    ') at ' + location.origin + '? What you enter from now on goes to that account.';
  if (isOther && !window.confirm(question)) return;
  var others = stored.filter(function (one) { return one.id !== mine.id; });
  localStorage.setItem('openhands-backends', JSON.stringify([mine].concat(others)));
  var active = JSON.stringify({ backendId: mine.id, orgId: null });
  localStorage.setItem('openhands-active-backend', active);
  sessionStorage.setItem('openhands-active-backend', active);
  localStorage.removeItem('openhands-backend-health');
  // Its welcome offers agents and automations that this service may not have.
  localStorage.setItem('openhands-onboarded', '1');
  localStorage.setItem('openhands-sidebar-onboarding-checklist-dismissed', 'true');
  function backends() {
    try {
      return JSON.parse(localStorage.getItem('openhands-backends')).filter(function (one) { return one; });
    } catch (error) { return []; }
  }
})();`;

// Runs after {@link ARRIVAL_SCRIPT}. A session of the same account is kept, because open pages of the console use it.
const CONNECT_SCRIPT = `(function () {
  var key = window.__AGENT_CANVAS_SESSION_API_KEY__;
  function open() { location.replace('/console/settings'); }
  function read(path, options) {
    return fetch(path, options).then(function (response) { return response.json(); });
  }
  if (!key) return open();
  var own = { headers: { 'X-Session-API-Key': key }, credentials: 'omit' };
  Promise.all([read('/auth/session'), read('/api/keys/current', own)]).then(function (found) {
    if (found[0].user && found[0].user.id === found[1].user_id) return;
    var headers = { 'Content-Type': 'application/json' };
    return fetch('/auth/key', { method: 'POST', headers: headers, body: JSON.stringify({ key: key }) });
  }).then(open, open);
})();`;

/** Signs the account of the application in at the console, and opens its page that connects git hosts. */
export const CONNECT_PAGE = `<!DOCTYPE html>
<html lang="en">
  <head><meta charset="utf-8"><title>Slipway</title><script>${ARRIVAL_SCRIPT}</script></head>
  <body><script>${CONNECT_SCRIPT}</script></body>
</html>
`;

/** The application's address, with a code that connects the browser: see {@link linkWithCode}. */
export function webAppLink(address: string, listenHost: string, issueCode: (() => string) | null): string {
  return linkWithCode(`${address}/`, listenHost, issueCode);
}

/**
 * A page's address, with a one-time code if the link stays on this machine. `issueCode` is null when no key exists or
 * others may read the link.
 */
export function linkWithCode(page: string, listenHost: string, issueCode: (() => string) | null): string {
  const isLocal = isLoopbackHost(listenHost) && isLoopbackHost(new URL(page).hostname);
  return issueCode !== null && isLocal ? `${page}#${FRAGMENT}${issueCode()}` : page;
}
