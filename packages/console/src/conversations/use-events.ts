import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { type AgentEvent, KINDS } from './agent-event.js';

export interface Events {
  list: readonly AgentEvent[];
  /** Whether the service can be heard. */
  isLive: boolean;
}

/** The events of a conversation from the first on, as they happen. The browser reconnects by itself. */
export function useEvents(id: string): Events {
  const cache = useQueryClient();
  const [events, setEvents] = useState<Events>({ list: [], isLive: false });
  useEffect(() => {
    const stream = new EventSource(`/api/v1/conversation/${id}/events/stream`);
    let arrived: AgentEvent[] = [];
    let frame = 0;
    const show = (): void => {
      const more = arrived;
      arrived = [];
      frame = 0;
      setEvents(({ list }) => ({ list: [...list, ...more], isLive: true }));
      if (more.some(({ kind }) => kind === 'ConversationStateUpdateEvent')) {
        void cache.invalidateQueries({ queryKey: ['conversation', id] });
      }
    };
    const take = ({ data }: MessageEvent<string>): void => {
      arrived.push(JSON.parse(data) as AgentEvent);
      // A long log arrives at once, and is drawn at once.
      frame ||= requestAnimationFrame(show);
    };
    for (const kind of KINDS) {
      stream.addEventListener(kind, take);
    }
    const setLive = (isLive: boolean) => (): void => setEvents(({ list }) => ({ list, isLive }));
    stream.addEventListener('open', setLive(true));
    stream.addEventListener('error', setLive(false));
    return () => {
      stream.close();
      cancelAnimationFrame(frame);
      setEvents({ list: [], isLive: false });
    };
  }, [id, cache]);
  return events;
}
