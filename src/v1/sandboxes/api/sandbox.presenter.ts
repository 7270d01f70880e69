import { Injectable } from '@nestjs/common';
import type { Page } from '../../../common/pagination/page.js';
import type { ExposedUrlDto, SandboxPageDto, SandboxDto } from './sandbox.dto.js';
import { SandboxUrls } from '../sandbox-urls.js';
import { toWireStatus } from '../sandbox-status.js';
import type { SandboxView } from '../sandbox.queries.js';

@Injectable()
export class SandboxPresenter {
  constructor(private readonly urls: SandboxUrls) {}

  sandbox(view: SandboxView): SandboxDto {
    return {
      id: view.id,
      created_by_user_id: view.userId,
      sandbox_spec_id: view.specId,
      status: toWireStatus(view.status, view.address),
      status_detail: view.statusDetail,
      session_api_key: view.sessionKey,
      exposed_urls: view.address === null ? null : this.exposedUrls(view),
      created_at: view.createdAt.toISOString(),
    };
  }

  /** What opens a sandbox is shown to its owner only. */
  page(viewerId: string, { items, nextPageId }: Page<SandboxView>): SandboxPageDto {
    const shown = items.map((view) => {
      const sandbox = this.sandbox(view);
      return view.userId === viewerId
        ? sandbox
        : Object.assign(sandbox, { session_api_key: null, exposed_urls: null });
    });
    return { items: shown, next_page_id: nextPageId };
  }

  batch(views: readonly (SandboxView | null)[]): (SandboxDto | null)[] {
    return views.map((view) => view && this.sandbox(view));
  }

  private exposedUrls(view: SandboxView): ExposedUrlDto[] {
    const { id, sessionKey, ports } = view;
    return [
      { name: 'AGENT_SERVER', url: this.urls.agentServer(id, view.exposePort) },
      ...(sessionKey === null ? [] : this.urls.openPorts(id, sessionKey, ports)),
    ].map(({ name, url }) => ({ name, url, port: portOf(url) }));
  }
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}
