// Package mock serves the mock of TiKV's client by TiKV's protocol, for tests: one PD and several stores on loopback. It is not TiKV.
// It has no Raft, no copies and no disk, so no figure and no durability that is measured with it means anything.
package mock

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/tikv/client-go/v2/testutils"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Version of the stores.
const Version = "5.0.0-mock"

// Server is a PD with stores.
type Server struct {
	// Address of PD.
	Address string
	// Cluster has the regions.
	Cluster *testutils.MockCluster
	servers []*grpc.Server
	client  *testutils.MockClient
}

// Start starts a PD at an address, and stores at ports that the kernel chooses; `secure` is nil without TLS.
func Start(address string, stores int, secure *tls.Config) (*Server, error) {
	client, cluster, placed, err := testutils.NewMockTiKV("", nil)
	if err != nil {
		return nil, err
	}
	made := &Server{Cluster: cluster, client: client}
	var options []grpc.ServerOption
	scheme := "http://"
	if secure != nil {
		options, scheme = append(options, grpc.Creds(credentials.NewTLS(secure))), "https://"
	}
	// As much as a client may send, and TiKV takes.
	options = append(options, grpc.MaxRecvMsgSize(1<<30))
	all := &shared{client: client, cluster: cluster, ends: map[string]time.Time{}}
	var storeIDs, peerIDs []uint64
	for range stores {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, made.Stop())
		}
		own, at := &store{shared: all, address: listener.Addr().String()}, cluster.AllocIDs(2)
		cluster.AddStore(at[0], own.address)
		storeIDs, peerIDs = append(storeIDs, at[0]), append(peerIDs, at[1])
		made.serve(listener, options, func(server *grpc.Server) { tikvpb.RegisterTikvServer(server, own) })
	}
	cluster.Bootstrap(cluster.AllocID(), storeIDs, peerIDs, peerIDs[0])
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errors.Join(err, made.Stop())
	}
	made.Address = listener.Addr().String()
	own := &placement{client: placed, url: scheme + made.Address}
	made.serve(listener, options, func(server *grpc.Server) { pdpb.RegisterPDServer(server, own) })
	return made, nil
}

func (s *Server) serve(listener net.Listener, options []grpc.ServerOption, register func(*grpc.Server)) {
	server := grpc.NewServer(options...)
	register(server)
	s.servers = append(s.servers, server)
	go func() { _ = server.Serve(listener) }() // ends with Stop
}

// Split divides the region of a key, in the form in which PD has keys, so that it begins a new one.
func (s *Server) Split(key []byte) {
	region, _, _ := s.Cluster.GetRegionByKey(key)
	peers := s.Cluster.AllocIDs(len(region.Peers))
	s.Cluster.SplitRaw(region.Id, s.Cluster.AllocID(), key, peers, peers[len(peers)-1])
}

// Stop ends the servers.
func (s *Server) Stop() error {
	for _, each := range s.servers {
		each.Stop()
	}
	return s.client.Close()
}
