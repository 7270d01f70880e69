import { isLoopbackHost } from '@slipway/common/http/loopback.js';

/** Precedes the code in the fragment of a link; browsers never send fragments. */
const FRAGMENT = 'code=';
/** The service in the application's own list of backends. */
const BACKEND = { id: 'slipway', name: 'Slipway', kind: 'cloud', authMode: 'api-key' };

/**
 * What a link with a code leads to: the code leaves the address and is exchanged for a key, which goes to where the
 * application keeps those that are typed in. The application then finds its backend as if somebody had entered it. Before
 * another key that is stored there loses its place, the user is asked, with the name of the account: the link may come from
 * a page of somebody else. The request is synchronous, so that no script of the application runs before it.
 *
 * The application reports to nobody. Agent servers it reaches through its own origin (`POST /api/cloud-proxy`), with the
 * key that it finds in a variable of the page.
 */
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
  request.open('POST', '/auth/code', false);
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

/**
 * The address of the web application, with a code in it that connects a browser where that leaves nobody's machine.
 *
 * @param address how clients reach the service
 * @param listenHost where it listens
 * @param issueCode makes the code; null: there is no key that it could stand for, or others may read the link
 */
export function webAppLink(address: string, listenHost: string, issueCode: (() => string) | null): string {
  const isLocal = isLoopbackHost(listenHost) && isLoopbackHost(new URL(address).hostname);
  return issueCode !== null && isLocal ? `${address}/#${FRAGMENT}${issueCode()}` : `${address}/`;
}
