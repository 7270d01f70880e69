import { isLoopbackHost } from '../common/http/loopback.js';

/** Precedes the key in the fragment of a link; browsers never send fragments. */
const FRAGMENT = 'key=';
/** The service in the application's own list of backends. */
const BACKEND = { id: 'slipway', name: 'Slipway', kind: 'cloud', authMode: 'api-key' };

/**
 * What a link with a key leads to: the key goes to where the application keeps those that are typed in, and leaves the
 * address at once. The application then finds its backend as if somebody had entered it. It reports to nobody. Agent
 * servers it reaches through its own origin (`POST /api/cloud-proxy`), with the key that it finds in a variable of the page.
 */
export const ARRIVAL_SCRIPT = `(function () {
  window.__AGENT_CANVAS_DO_NOT_TRACK__ = true;
  Object.defineProperty(window, '__AGENT_CANVAS_SESSION_API_KEY__', { get: function () {
    try {
      return JSON.parse(localStorage.getItem('openhands-backends')).find(function (one) {
        return one.kind === 'cloud' && one.host.replace(/[/]+$/, '') === location.origin;
      }).apiKey;
    } catch (error) { return undefined; }
  } });
  if (location.hash.indexOf('#${FRAGMENT}') !== 0) return;
  var key = decodeURIComponent(location.hash.slice(${FRAGMENT.length + 1}));
  history.replaceState(null, '', location.pathname + location.search);
  var known = [];
  try { known = JSON.parse(localStorage.getItem('openhands-backends')) || []; } catch (error) { known = []; }
  var mine = Object.assign(${JSON.stringify(BACKEND)}, { host: location.origin, apiKey: key });
  var others = Array.isArray(known) ? known.filter(function (one) { return one && one.id !== mine.id; }) : [];
  localStorage.setItem('openhands-backends', JSON.stringify([mine].concat(others)));
  var active = JSON.stringify({ backendId: mine.id, orgId: null });
  localStorage.setItem('openhands-active-backend', active);
  sessionStorage.setItem('openhands-active-backend', active);
  localStorage.removeItem('openhands-backend-health');
})();`;

/**
 * The address of the web application, with the key in it where that leaves nobody's machine.
 *
 * @param address how clients reach the service
 * @param listenHost where it listens
 * @param key the one that the first start has generated; null: there is none
 */
export function webAppLink(address: string, listenHost: string, key: string | null): string {
  const isLocal = isLoopbackHost(listenHost) && isLoopbackHost(new URL(address).hostname);
  return key !== null && isLocal ? `${address}/#${FRAGMENT}${encodeURIComponent(key)}` : `${address}/`;
}
