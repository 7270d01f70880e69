import { type ReactNode, useEffect, useRef } from 'react';
import { Link, useLocation } from 'wouter';
import { api, bodyOf, type Schemas, useMay, useSessionChange } from '../api/client.js';
import icon from '../icon.svg';
import { endNotifications } from '../settings/notifications.js';
import { ActionButton } from '../ui/actions.js';
import { Callout } from '../ui/blocks.js';
import { useIcon, useWaiting } from './waiting.js';

/** The last is for administrators. */
const PLACES = [
  ['Work', '/'],
  ['Conversations', '/conversations'],
  ['Automations', '/automations'],
  ['Settings', '/settings'],
  ['Administration', '/administration'],
] as const;

const READING =
  'Your role, or the key that you signed in with, starts and changes nothing. An administrator can give you another one.';

export function Layout({ user, children }: { user: Schemas['SessionUser']; children: ReactNode }) {
  const [location] = useLocation();
  const change = useSessionChange();
  const mayRun = useMay('run');
  useIcon(useWaiting());
  const signOut = async () => {
    await endNotifications();
    await change(() => bodyOf(api.POST('/auth/logout')));
  };
  return (
    <>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <header className="bar">
        <Link href="/" className="brand" aria-label="Slipway">
          <img src={icon} width="22" height="22" alt="" />
          Slipway
        </Link>
        <nav aria-label="Main">
          {PLACES.slice(0, user.is_admin ? undefined : -1).map(([name, href]) => (
            <Link key={href} href={href} aria-current={href === `/${location.split('/')[1]}` ? 'page' : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <span className="who" title={user.email}>
          {user.email}
        </span>
        <ActionButton look="link" act={signOut} text="Sign out" />
      </header>
      <main id="content" tabIndex={-1}>
        {!mayRun && <Callout kind="info" title="You may only read" text={READING} />}
        {children}
      </main>
    </>
  );
}

interface PageProps {
  title: string;
  /** Beside the title. */
  actions?: ReactNode;
  /** Below the title. */
  lead?: ReactNode;
  children: ReactNode;
}

/** A page with its one heading, which gets the focus when a link has led here: screen readers begin with it. */
export function Page({ title, actions, lead, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const waiting = useWaiting();
  useEffect(() => {
    document.title = `${waiting && `(${waiting}) `}${title} · Slipway`;
  }, [title, waiting]);
  useEffect(() => {
    if (document.activeElement?.closest('nav, .row-link') !== null) {
      heading.current?.focus();
    }
  }, []);
  return (
    <>
      <div className="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </div>
      {lead !== undefined && <div className="lead">{lead}</div>}
      {children}
    </>
  );
}
