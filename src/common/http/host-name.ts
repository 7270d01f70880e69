import { isIP } from 'node:net';

/** Names that only mean something inside one machine, network or cluster. */
const LOCAL_SUFFIXES = [
  '.localhost',
  '.local',
  '.localdomain',
  '.internal',
  '.intranet',
  '.lan',
  '.svc',
  '.home.arpa',
];

/**
 * Whether a host name, as the WHATWG URL parser returns it, can be a name of the public internet: at least two
 * labels, no IP literal (the parser has already normalised decimal, octal and hexadecimal notations), none of
 * the local-only suffixes. Says nothing about what the name resolves to.
 */
export function isPublicHostName(hostname: string): boolean {
  const host = (hostname.endsWith('.') ? hostname.slice(0, -1) : hostname).toLowerCase();
  if (host.startsWith('[') || isIP(host) !== 0 || !host.includes('.')) {
    return false;
  }
  return !LOCAL_SUFFIXES.some((suffix) => host.endsWith(suffix));
}
