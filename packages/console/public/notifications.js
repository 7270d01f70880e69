/* Shows what the service sends to this browser, also while no page of it is open. */

self.addEventListener('push', (event) => {
  const { title, body, url, tag } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, { body, tag, data: url }));
});

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  // At this origin, by whatever name the service knows itself.
  event.waitUntil(self.clients.openWindow(new URL(event.notification.data).pathname));
});
