import { isLoopbackHost } from '@slipway/common/http/loopback.js';

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
  function backends() {
    try {
      return JSON.parse(localStorage.getItem('openhands-backends')).filter(function (one) { return one; });
    } catch (error) { return []; }
  }
})();`;

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
