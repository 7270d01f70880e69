import type { Request } from 'express';

/** The part of Express 5's router layers that tells which routes exist. */
interface RouteLayer {
  match(path: string): boolean;
  route: { methods: Record<string, boolean | undefined> };
}

/** Methods that some route has at the request's path (`GET` brings `HEAD`); empty when nothing is there. */
export function allowedMethods(request: Request): string[] {
  const layers: readonly object[] = request.app.router.stack;
  const methods = new Set<string>();
  for (const layer of layers) {
    if (isRouteLayer(layer) && layer.match(request.path)) {
      for (const [method, present] of Object.entries(layer.route.methods)) {
        if (present === true && method !== '_all') {
          methods.add(method.toUpperCase());
        }
      }
    }
  }
  if (methods.has('GET')) {
    methods.add('HEAD');
  }
  return [...methods].toSorted();
}

function isRouteLayer(layer: object): layer is RouteLayer {
  return 'route' in layer && layer.route !== undefined && 'match' in layer;
}
