import { queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { api, bodyOf, by } from '../api/client.js';
import address from '../icon.svg';
import picture from '../icon.svg?raw';

const POLL_MS = 15_000;
/** A page that was not looked at for so long asks no more, so that its session can end. */
const UNSEEN_MS = 3_600_000;
/** More are "9+". */
const MOST = 10;

let seenAt = Date.now();
document.addEventListener('visibilitychange', () => {
  seenAt = Date.now();
});

const waitingQuery = queryOptions({
  queryKey: ['waiting'],
  queryFn: async () => {
    const found = await bodyOf(
      api.GET('/api/v1/app-conversations/search', by({ state__eq: 'waiting', owner__eq: 'me', limit: MOST })),
    );
    return found.items.length;
  },
  refetchInterval: () => (document.hidden && Date.now() - seenAt > UNSEEN_MS ? false : POLL_MS),
  // Who looks at another page is told by the title of this one.
  refetchIntervalInBackground: true,
});

/** How many conversations wait for the user, as it is written; empty where none does. */
export function useWaiting(): string {
  const { data: count = 0 } = useQuery(waitingQuery);
  return count === 0 ? '' : count < MOST ? String(count) : `${MOST - 1}+`;
}

/** Draws it on the icon of the page. */
export function useIcon(waiting: string): void {
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
    const badge = `<circle cx="21" cy="11" r="11" fill="#c22f1d"/><text x="21" y="17" font-family="sans-serif" font-size="16" font-weight="bold" text-anchor="middle" fill="#fff">${waiting}</text>`;
    const drawn = `data:image/svg+xml,${encodeURIComponent(picture.replace('</svg>', `${badge}</svg>`))}`;
    icon?.setAttribute('href', waiting === '' ? address : drawn);
  }, [waiting]);
}
