import { useInfiniteQuery, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { type ComponentProps, createContext, type ReactNode, use, useId, useState, useSyncExternalStore } from 'react';
import { Link } from 'wouter';

interface ButtonProps extends ComponentProps<'button'> {
  text: string;
  look?: 'primary' | 'plain' | 'danger' | 'link';
  /** It works on it: nothing to press now, and screen readers know why. */
  isBusy?: boolean;
}

export function Button({ look = 'plain', isBusy = false, disabled, text, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} className={`button ${look}`} disabled={disabled || isBusy} aria-busy={isBusy}>
      {isBusy && <span className="spinner" aria-hidden="true" />}
      {text}
    </button>
  );
}

type CalloutProps = { kind: 'error' | 'warning' | 'info'; title?: string; text?: string | null; children?: ReactNode };

export function Callout({ kind, title, text, children }: CalloutProps) {
  return (
    <div className={`callout ${kind}`} role={kind === 'error' ? 'alert' : undefined}>
      {title !== undefined && <p className="callout-title">{title}</p>}
      {text && <p>{text}</p>}
      {children}
    </div>
  );
}

/** A link to another site, which opens beside this page. */
export function Elsewhere({ href, text }: { href: string; text: string }) {
  return (
    <a href={href} target="_blank" rel="noreferrer">
      {text}
    </a>
  );
}

/** What a list says that has nothing, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {typeof children === 'string' ? <p>{children}</p> : children}
    </div>
  );
}

interface LoadedProps<T> {
  query: UseQueryResult<T>;
  /** What is being loaded, for people who wait for it. */
  name: string;
  /** What is said of a list that has nothing. */
  empty?: ReactNode;
  /** What is said of a failure; the words of the service by default. */
  explain?: ((error: Error) => ReactNode) | undefined;
  children: (data: T) => ReactNode;
}

/** The data of a query, or what there is to say until it is there. Data stay while they are asked for again. */
export function Loaded<T>({ query, name, empty, explain, children }: LoadedProps<T>) {
  if (empty !== undefined && Array.isArray(query.data) && query.data.length === 0) {
    return typeof empty === 'string' ? <Empty title={empty} /> : empty;
  }
  if (query.data !== undefined) {
    return children(query.data);
  }
  return query.isError ? (
    <Callout kind="error" title={`Cannot load ${name}`}>
      {explain?.(query.error) || <p>{query.error.message}</p>}
      <Button onClick={() => void query.refetch()} text="Try again" />
    </Callout>
  ) : (
    <p className="loading" role="status">
      <span className="spinner" aria-hidden="true" /> Loading {name}…
    </p>
  );
}

type RowsProps<T> = Omit<LoadedProps<T[]>, 'children'> & { children: (item: T, index: number) => ReactNode };

/** A list that is loaded. */
export function Rows<T>({ children, ...rest }: RowsProps<T>) {
  return (
    <Loaded {...rest}>
      {(items) => <ul className="rows" aria-label={rest.name} children={items.map(children)} />}
    </Loaded>
  );
}

/** Names with what there is to each; those without anything are left out. */
export function Pairs({ of, className }: { of: Record<string, ReactNode>; className: string }) {
  return (
    <dl className={className}>
      {Object.entries(of)
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

interface RowProps {
  title: ReactNode;
  href?: string;
  /** One or several; those that are false are left out. */
  facts?: ReactNode | ReactNode[];
  /** Buttons of the row. */
  children?: ReactNode;
  /** Below the row. */
  more?: ReactNode;
}

export function Row({ title, href = '', facts, children, more }: RowProps) {
  return (
    <li className="row">
      <div className="row-main">
        <div className="row-title">
          {href === '' ? title : <Link href={href} className="row-link" children={title} />}
        </div>
        <div className="row-facts">
          {[facts].flat().map((fact, index) => fact && <span key={String(index)}>{fact}</span>)}
        </div>
      </div>
      {children}
      <div className="row-more">{more}</div>
    </li>
  );
}

interface TableProps<T> extends Omit<LoadedProps<T[]>, 'children'> {
  /** A last one without a name has buttons. */
  columns: string[];
  /** The cells of its row. */
  children: (item: T) => ReactNode[];
}

/** The same as a table. */
export function Table<T extends { id: string }>({ columns, children, ...rest }: TableProps<T>) {
  return (
    <Loaded {...rest}>
      {(items) => (
        <div className="scroller" role="region" aria-label={rest.name} tabIndex={0}>
          <table aria-label={rest.name}>
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column} scope="col">
                    {column === '' ? <span className="visually-hidden">Actions</span> : column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {items.map((item) => (
                <tr key={item.id}>
                  {children(item).map((cell, index) => (
                    <td key={columns[index]}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Loaded>
  );
}

type Tone = 'good' | 'bad' | 'busy' | 'calm' | 'warn';

const TONES: Record<Tone, string[]> = {
  busy: ['running', 'starting', 'waiting', 'watching'],
  warn: ['waits for you', 'partial', 'stale', 'degraded'],
  good: ['finished', 'ready', 'ok', 'delivered', 'reached'],
  bad: ['failed', 'gave up'],
  calm: [],
};

/** The one word for what the API calls differently. */
const WORDS: Record<string, string> = {
  completed: 'finished',
  pending: 'waiting',
  working: 'running',
  error: 'failed',
  stuck: 'failed',
  missing: 'deleted',
};

/** A state as people read it. */
export function wordOf(state: string): string {
  const name = state.toLowerCase();
  return WORDS[name] ?? name.replaceAll('_', ' ');
}

/** A state in words; its colour only repeats them. */
export function Badge({ state }: { state: string }) {
  const word = wordOf(state);
  const [tone] = Object.entries(TONES).find(([, states]) => states.includes(word)) ?? ['calm'];
  return <span className={`badge ${tone}`}>{word}</span>;
}

export const dollars = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 4,
});

/** A part of a page with its own heading, and how much it has. */
export function Group({ title, count, children }: { title: string; count?: number; children: ReactNode }) {
  const id = useId();
  return (
    <section className="group" aria-labelledby={id}>
      <h2 id={id}>
        {title} <span className="number">{count}</span>
      </h2>
      {children}
    </section>
  );
}

/** Whether the parts of the page are folded where there is little room. */
export const Folds = createContext(false);

const phone = matchMedia('(max-width: 900px)');

function onPhone(listen: () => void): () => void {
  phone.addEventListener('change', listen);
  return () => phone.removeEventListener('change', listen);
}

/** A part of a long page, with an address of its own (`#git-hosts`). */
export function Section({ title, lead, children }: { title: string; lead: string; children: ReactNode }) {
  const isFolded = useSyncExternalStore(onPhone, () => phone.matches) && use(Folds);
  const [isOpen, setOpen] = useState(location.hash === `#${idOf(title)}`);
  const isHidden = isFolded && !isOpen;
  const button = (
    <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} children={title} />
  );
  return (
    <section id={idOf(title)} className="section" ref={showIfAsked}>
      <div>
        <h2>{isFolded ? button : title}</h2>
        <p className="hint" hidden={isHidden} children={lead} />
      </div>
      <div className="section-body" hidden={isHidden} children={children} />
    </section>
  );
}

/** The browser has looked for the part before it was there. */
function showIfAsked(part: HTMLElement | null): void {
  if (part !== null && location.hash === `#${part.id}`) {
    part.scrollIntoView();
  }
}

/** Links to the parts of a page. */
export function Contents({ titles }: { titles: string[] }) {
  return (
    <nav aria-label="On this page" className="contents">
      {titles.map((title) => (
        <a key={title} href={`#${idOf(title)}`}>
          {title}
        </a>
      ))}
    </nav>
  );
}

function idOf(title: string): string {
  return title.toLowerCase().replaceAll(' ', '-');
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;
const ago = new Intl.RelativeTimeFormat('en', { style: 'short' });
const exact = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hour12: false });

/** "Created 3 hr. ago". */
export function When({ what, time }: { what: string; time: string }) {
  return (
    <>
      {what} <Ago time={time} />
    </>
  );
}

/** "3 hr. ago", also while nothing else is drawn again; the whole time on hovering. */
export function Ago({ time }: { time: string }) {
  const { data: now = Date.now() } = useQuery({ queryKey: ['now'], queryFn: Date.now, refetchInterval: 30_000 });
  return <Moment time={time} text={(date) => agoText(date, now)} />;
}

export function Clock({ time }: { time: string }) {
  return <Moment time={time} text={(date) => clock.format(date)} />;
}

/** Times of agents have no zone, and are UTC. */
function Moment({ time, text }: { time: string; text: (date: Date) => string }) {
  const date = new Date(/(?:Z|[+-]\d\d:\d\d)$/.test(time) ? time : `${time}Z`);
  return (
    <time dateTime={date.toISOString()} title={exact.format(date)}>
      {text(date)}
    </time>
  );
}

function agoText(date: Date, now: number): string {
  const seconds = (date.getTime() - now) / 1000;
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  return unit === undefined ? 'just now' : ago.format(Math.round(seconds / unit[1]), unit[0]);
}

/** "41 s", "3 min", "2 h 5 min". */
export function duration(seconds: number): string {
  const minutes = Math.round(seconds / 60);
  const text = minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return seconds < 60 ? `${Math.round(seconds)} s` : text;
}

interface PagesOptions<T> {
  queryKey: unknown[];
  load: (page: { page_id?: string }) => Promise<{ items: T[]; next_page_id: string | null }>;
  refetchInterval?: number;
}

/** A list that comes in pages, the newest first, with the button that brings the next. */
export function usePages<T>({ queryKey, load, refetchInterval = 0 }: PagesOptions<T>) {
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => load(pageParam === '' ? {} : { page_id: pageParam }),
    initialPageParam: '',
    getNextPageParam: ({ next_page_id: next }) => next,
    placeholderData: (before) => before,
    refetchInterval: refetchInterval || false,
    select: ({ pages }) => pages.flatMap(({ items }) => items),
  });
  const older = query.hasNextPage && (
    <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()} text="Show older" />
  );
  return { query, older };
}
